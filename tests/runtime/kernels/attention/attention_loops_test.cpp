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

/// Some multiples of kKeyBlock, or of one, between 0 and all keys: an empty block among them, now and then.
std::vector<int64_t> any_cuts(int64_t keys, int64_t unit) {
  std::vector<int64_t> cuts{0};
  while (*rc::gen::inRange(0, 3) > 0) {
    const int64_t next = cuts.back() + unit * *rc::gen::inRange<int64_t>(0, 3);
    if (next <= keys) cuts.push_back(next);
  }
  cuts.push_back(keys);
  return cuts;
}

/// The same call with keys [from, to) alone.
template <class Work>
Work with_keys(Work work, int64_t from, int64_t to) {
  work.shape.keys = to - from;
  work.shape.first_row -= from;
  work.key.data += from * work.key.row_stride;
  work.value.data += from * work.value.row_stride;
  return work;
}

template <class Input, class T>
void forward_in_blocks(const kernels::AttentionForward<Input, T>& whole, InstructionSet set,
                       const std::vector<int64_t>& cuts) {
  const auto& shape = whole.shape;
  const int64_t heads = shape.heads * shape.group;
  using State = std::pair<std::vector<T>, std::vector<T>>;
  const auto numbers = [&](int64_t size) {
    return std::vector<T>(static_cast<size_t>(shape.batch * heads * shape.rows * size) + 1);
  };
  State before{numbers(shape.width), numbers(kernels::kWeightsOfState)}, after = before;
  const auto view = [&](auto* data, int64_t size) {
    return kernels::HeadTensor<std::remove_pointer_t<decltype(data)>>{data, heads * shape.rows * size,
                                                                      shape.rows * size, size, 1};
  };
  for (size_t block = 0; block + 1 < cuts.size(); ++block) {
    auto part = with_keys(whole, cuts[block], cuts[block + 1]);
    part.before = {view(std::as_const(before.first).data(), shape.width),
                   view(std::as_const(before.second).data(), kernels::kWeightsOfState)};
    if (block + 2 < cuts.size())
      part.after = {view(after.first.data(), shape.width), view(after.second.data(), kernels::kWeightsOfState)};
    kernels::attention_forward<Input, T>(part, testing::thread_workers(2), set);
    std::swap(before, after);
  }
}

template <class Input, class T>
void backward_in_blocks(const kernels::AttentionBackward<Input, T>& whole, InstructionSet set,
                        const std::vector<int64_t>& cuts) {
  const auto& to = whole.query_gradient;
  for (size_t block = 0; block + 1 < cuts.size(); ++block) {
    auto part = with_keys(whole, cuts[block], cuts[block + 1]);
    part.key_gradient.data += cuts[block] * whole.key_gradient.row_stride;
    part.value_gradient.data += cuts[block] * whole.value_gradient.row_stride;
    if (block > 0) part.query_before = {to.data, to.batch_stride, to.head_stride, to.row_stride, to.element_stride};
    kernels::attention_backward<Input, T>(part, testing::thread_workers(2), set);
  }
}

template <class Input, class T>
void keys_in_blocks_agree_with_oracle(InstructionSet set) {
  testing::attention_equals_oracle<Input, T>(
      [&](const auto& work) { forward_in_blocks(work, set, any_cuts(work.shape.keys, kernels::kKeyBlock)); },
      [&](const auto& work) { backward_in_blocks(work, set, any_cuts(work.shape.keys, 7)); });
}

TEST_P(AttentionLoops, GiveTheOraclesBitsForKeysInBlocks) {
  testing::expect_holds([] { keys_in_blocks_agree_with_oracle<float, float>(GetParam()); });
  testing::expect_holds([] { keys_in_blocks_agree_with_oracle<double, double>(GetParam()); });
  testing::expect_holds([] { keys_in_blocks_agree_with_oracle<kernels::Bfloat16, float>(GetParam()); });
}

/// Several blocks for certain: what random sizes seldom reach.
TEST_P(AttentionLoops, AgreeOverKeysInManyBlocks) {
  uint32_t seed = 0;
  for (const auto& [sizes, first_row, cuts] :
       {std::tuple<testing::AttentionSizes, int64_t, std::vector<int64_t>>{{1, 1, 1, 530, 530, 8, 9}, 0, {0, 256, 530}},
        {{1, 2, 3, 200, 700, 5, 33}, 500, {0, 256, 512, 700}},
        {{1, 1, 2, 290, 260, 17, 4}, -20, {0, 0, 256, 260}},
        {{1, 1, 1, 64, 1030, 3, 3}, 966, {0, 512, 768, 768, 1024, 1030}}})
    for (const bool causal : {true, false})
      for (const Numbers kind : {Numbers::kNormal, Numbers::kSpecial}) {
        const AttentionCase<float, float> attention(sizes, causal, first_row, kind, ++seed);
        const auto set = GetParam();
        const auto found = attention.run([&, &cuts = cuts](const auto& work) { forward_in_blocks(work, set, cuts); },
                                         [&, &cuts = cuts](const auto& work) { backward_in_blocks(work, set, cuts); });
        EXPECT_TRUE(found == attention.expected) << sizes.rows << " " << causal;
      }
}

}  // namespace
}  // namespace lockstep
