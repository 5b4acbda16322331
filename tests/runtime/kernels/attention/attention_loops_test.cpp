#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/cases/attention_cases.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"

namespace lockstep {
namespace {

using testing::AttentionCase;
using testing::Numbers;

template <class Input, class T>
void kernels_agree_with_oracle(InstructionSet set) {
  const auto workers = testing::thread_workers(*rc::gen::element(1, 2, 4));
  testing::attention_equals_oracle<Input, T>(
      [&](const auto& work) { kernels::attention_forward<Input, T>(work, workers, set); },
      [&](const auto& work) { kernels::attention_backward<Input, T>(work, workers, set); });
}

class AttentionLoops : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, AttentionLoops, testing::every_set(), testing::set_name);

TEST_P(AttentionLoops, GiveTheOraclesBitsInSinglePrecision) {
  testing::expect_holds([] { kernels_agree_with_oracle<float, float>(GetParam()); });
}
TEST_P(AttentionLoops, GiveTheOraclesBitsInDoublePrecision) {
  testing::expect_holds([] { kernels_agree_with_oracle<double, double>(GetParam()); });
}
TEST_P(AttentionLoops, GiveTheOraclesBitsForBfloat16) {
  testing::expect_holds([] { kernels_agree_with_oracle<kernels::Bfloat16, float>(GetParam()); });
}

/// Several blocks of keys, of rows and leaves: what random sizes seldom reach.
TEST_P(AttentionLoops, AgreeOverManyBlocks) {
  uint32_t seed = 0;
  for (const auto& [sizes, first_row] : {std::pair<testing::AttentionSizes, int64_t>{{1, 1, 1, 530, 530, 8, 9}, 0},
                                         {{1, 2, 3, 200, 700, 5, 33}, 500},
                                         {{1, 1, 2, 290, 260, 17, 4}, 0},
                                         {{1, 1, 1, 64, 1030, 3, 3}, 966}})
    for (const Numbers kind : {Numbers::kNormal, Numbers::kSpecial}) {
      const AttentionCase<float, float> attention(sizes, /*causal=*/true, first_row, kind, ++seed);
      EXPECT_TRUE(attention.run(GetParam(), 2) == attention.expected) << sizes.rows;
    }
}

}  // namespace
}  // namespace lockstep
