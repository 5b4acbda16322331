#include "trainer/pipeline/block_split.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <tuple>

#include "core/error.h"
#include "tests/support/message_of.h"

namespace lockstep::pipeline {
namespace {

using testing::message_of;
using Split = std::vector<int64_t>;

/// What a split is chosen by, smaller is better: heaviest stage, sum of squares, first blocks.
std::tuple<int64_t, int64_t, Split> merit(const std::vector<int64_t>& weights, const Split& split) {
  int64_t heaviest = 0, squares = 0;
  for (size_t stage = 0; stage < split.size(); ++stage) {
    const auto end = stage + 1 < split.size() ? static_cast<size_t>(split[stage + 1]) : weights.size();
    int64_t sum = 0;
    for (auto block = static_cast<size_t>(split[stage]); block < end; ++block) sum += weights[block];
    heaviest = std::max(heaviest, sum);
    squares += sum * sum;
  }
  return {heaviest, squares, split};
}

/// Calls `use` with every split into so many runs.
template <class Use>
void every_split(int64_t blocks, int64_t stages, Split begun, const Use& use) {
  if (stages == 0) return use(begun);
  const int64_t least = begun.empty() ? 0 : begun.back() + 1;
  const int64_t most = begun.empty() ? 0 : blocks - stages;
  for (int64_t first = least; first <= most; ++first) {
    auto more = begun;
    more.push_back(first);
    every_split(blocks, stages - 1, more, use);
  }
}

RC_GTEST_PROP(BlockSplit, IsTheBestOfAll, ()) {
  const auto blocks = *rc::gen::inRange<int64_t>(1, 11);
  const auto weights =
      *rc::gen::container<std::vector<int64_t>>(static_cast<size_t>(blocks), rc::gen::inRange<int64_t>(0, 9));
  const auto stages = *rc::gen::inRange<int64_t>(1, blocks + 1);
  auto best = merit(weights, split_by_weight(weights, stages));
  const auto found = best;
  every_split(blocks, stages, {}, [&](const Split& split) { best = std::min(best, merit(weights, split)); });
  RC_ASSERT(found == best);
}

TEST(BlockSplit, AmongEqualsTheFirstStagesHaveFewerBlocks) {
  EXPECT_EQ(split_by_weight(Split{1, 1, 1, 1}, 2), (Split{0, 2}));
  EXPECT_EQ(split_by_weight(Split{1, 1, 1, 1, 1}, 2), (Split{0, 2}));
  EXPECT_EQ(split_by_weight(Split{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 4), (Split{0, 2, 4, 7}));
  EXPECT_EQ(split_by_weight(Split{3, 1, 1, 1, 1, 1, 4}, 4), (Split{0, 1, 3, 6})) << "embedding and output weigh more";
}

TEST(BlockSplit, TheHeaviestStageCountsBeforeAll) {
  EXPECT_EQ(split_by_weight(Split{1, 5, 2, 3}, 3), (Split{0, 1, 2})) << "5 at most; 6, 2, 3 are more alike";
}

TEST(BlockSplit, WeightsMayBeAsLargeAsOperations) {
  const int64_t layer = int64_t{1} << 42;
  EXPECT_EQ(split_by_weight(std::vector<int64_t>(32, layer), 8), (Split{0, 4, 8, 12, 16, 20, 24, 28}));
}

TEST(BlockSplit, MoreStagesThanBlocksAreRefused) {
  EXPECT_EQ(message_of<BadInput>([] {
              split_by_weight(Split{1, 2}, 3);
            }),
            "3 pipeline stages for 2 blocks: each needs one. Choose fewer ranks or stages per rank, or more layers.");
}

const std::vector<std::string> kBlocks = {"tok_embeddings", "layers.0", "layers.1", "norm", "output"};

std::string refusal(const std::vector<std::vector<std::string>>& stages) {
  return message_of<BadInput>([&] { split_as_named(kBlocks, stages); });
}

TEST(BlockSplit, IsWhatTheJobNames) {
  const std::vector<std::vector<std::string>> stages = {
      {"tok_embeddings", "layers.0"}, {"layers.1"}, {"norm", "output"}};
  EXPECT_EQ(split_as_named(kBlocks, stages), (Split{0, 2, 3}));
}

TEST(BlockSplit, NamesHaveToBeRunsOfAllBlocks) {
  const char* rule = ": stages hold the model's blocks in their order, each once.";
  EXPECT_EQ(refusal({{"tok_embeddings"}, {"layers.1", "layers.0"}}),
            std::string("stage 1: layers.1 stands where layers.0 was expected") + rule);
  EXPECT_EQ(refusal({{"tok_embeddings", "layers.0"}, {"layers.0"}}),
            std::string("stage 1: layers.0 stands where layers.1 was expected") + rule);
  EXPECT_EQ(refusal({{"tok_embeddings", "layers.0", "layers.1"}, {"norm", "output", "layers.2"}}),
            std::string("stage 1: layers.2 stands where the end was expected") + rule);
  EXPECT_EQ(refusal({{"tok_embeddings", "layers.0"}, {"layers.1"}}), std::string("norm is in no stage") + rule);
  EXPECT_EQ(refusal({{"tok_embeddings"}, {}}), "stage 1 has no block; each needs one.");
}

/// As torchtitan counts: 32 layers and one for each end, over stages of 5 layers, are 7 stages.
TEST(BlockSplit, LayersPerStageSayHowManyStagesARankHas) {
  EXPECT_EQ(stages_per_rank({.layers = 30, .per_stage = 4}, 4), 2);
  EXPECT_EQ(stages_per_rank({.layers = 32, .per_stage = 34}, 1), 1);
  EXPECT_EQ(stages_per_rank({.layers = 32, .per_stage = 8, .first_less = 0, .last_less = 0}, 2), 2);
  EXPECT_EQ(
      message_of<BadInput>([] { stages_per_rank({.layers = 32, .per_stage = 5}, 4); }),
      "5 layers of 34 (the ends count 1 and 1) are 7 stages, no multiple of 4 ranks. Choose other layers per stage; 9 "
      "give one stage per rank.");
}

}  // namespace
}  // namespace lockstep::pipeline
