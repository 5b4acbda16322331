#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/cases/attention_cases.h"

namespace lockstep {
namespace {

using testing::AttentionCase;
using testing::Numbers;

template <class Input, class T>
void kernels_agree_with_oracle() {
  const auto workers = testing::thread_workers(*rc::gen::element(1, 2, 4));
  const auto set = *rc::gen::elementOf(available_instruction_sets());
  testing::attention_equals_oracle<Input, T>(
      [&](const auto& work) { kernels::attention_forward<Input, T>(work, workers, set); },
      [&](const auto& work) { kernels::attention_backward<Input, T>(work, workers, set); });
}

RC_GTEST_PROP(AttentionLoops, GiveTheOraclesBitsInSinglePrecision, ()) { kernels_agree_with_oracle<float, float>(); }
RC_GTEST_PROP(AttentionLoops, GiveTheOraclesBitsInDoublePrecision, ()) { kernels_agree_with_oracle<double, double>(); }
RC_GTEST_PROP(AttentionLoops, GiveTheOraclesBitsForBfloat16, ()) {
  kernels_agree_with_oracle<kernels::Bfloat16, float>();
}

/// Several blocks of keys, of rows and leaves: what random sizes seldom reach.
TEST(AttentionLoops, AgreeOverManyBlocks) {
  uint32_t seed = 0;
  for (const auto& [sizes, first_row] : {std::pair<testing::AttentionSizes, int64_t>{{1, 1, 1, 530, 530, 8, 9}, 0},
                                         {{1, 2, 3, 200, 700, 5, 33}, 500},
                                         {{1, 1, 2, 290, 260, 17, 4}, 0},
                                         {{1, 1, 1, 64, 1030, 3, 3}, 966}})
    for (const Numbers kind : {Numbers::kNormal, Numbers::kSpecial}) {
      const AttentionCase<float, float> attention(sizes, /*causal=*/true, first_row, kind, ++seed);
      for (const InstructionSet set : available_instruction_sets())
        EXPECT_TRUE(attention.run(set, 2) == attention.expected) << sizes.rows << " " << name_of(set);
    }
}

}  // namespace
}  // namespace lockstep
