// What a step in single gave, beside the same one in double and the shaken one.
#include "consistency/ops/step_rounding.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "consistency/bounds/spread.h"
#include "consistency/ops/roundings.h"
#include "fuzz/cases/tensors.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/gather.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

at::Tensor values() { return at::arange(1, 129, at::kDouble).view({64, 2}); }

/// Two ranks, which hold 32 rows each.
class StepRounding : public ::testing::Test {
 protected:
  at::Tensor placed(const at::Tensor& plain, const char* layout = "[a=S(0)]") {
    return distribute(plain, Layout::parse(mesh_, layout));
  }

  /// `gradient` stands for all tensors.
  static StepRecord record(const at::Tensor& gradient, double loss = 5, double norm = 7) {
    StepRecord record{1, 64, loss, norm, {{"w", gradient}}, {}, {{"mean of w", gradient}}, {}};
    record.token_losses = {{"microbatch 0", gradient}};
    return record;
  }

  /// Every element of the shaken step is off by 0.25.
  Comparison compared(const StepRecord& run) {
    return compare_within_roundings(exact_, record(one_rank(values() + 0.25)), run);
  }
  at::Tensor one_rank(const at::Tensor& plain) { return distribute(plain, Layout::replicated(alone_)); }

  World world_{{.rank_count = 2}};
  const Mesh& mesh_ = world_.mesh("a=2");
  World device_{{.rank_count = 1}};
  const Mesh& alone_ = device_.mesh("a=1");
  StepRecord exact_ = record(one_rank(values()));
};

TEST_F(StepRounding, WhatIsNoFurtherThanTheShakenStepAgrees) {
  const auto found = compared(record(placed(values() - 0.125)));
  EXPECT_TRUE(found.agrees());
  EXPECT_NEAR(found.over_bound, 0.5 / largest_ratio_of_lengths(128), 1e-12);
  EXPECT_EQ(found.values, 3 * 128 + 3) << "three tensors, loss, norm and the number of tokens";
}

/// The bound is the ratio of lengths of both parts together, to the left and to the right of it.
TEST_F(StepRounding, ChanceAndNoMore) {
  const double allowed = 0.25 * largest_ratio_of_lengths(128);
  EXPECT_TRUE(compared(record(placed(values() + 0.999 * allowed))).agrees());
  const auto found = compared(record(placed(values() + 1.001 * allowed)));
  ASSERT_EQ(found.beyond.size(), 3u);
  EXPECT_EQ(found.beyond[0].kind, "loss of each token");
  EXPECT_EQ(found.beyond[1].kind, "gradient");
  EXPECT_EQ(found.beyond[2].kind, "optimizer state");
  EXPECT_NEAR(found.over_bound, 1.001, 1e-9);
}

TEST_F(StepRounding, OneRanksPartIsNamed) {
  auto run = record(placed(values()));
  run.gradients[0].value = placed(values());
  sharded(run.gradients[0].value).shards()->local_tensors()[1][5][1] = 1000;
  const auto found = compared(run);
  ASSERT_EQ(found.beyond.size(), 1u);
  EXPECT_THAT(found.beyond[0].text(), StartsWith("gradient of w[37, 1] = 1000, in double: 76 "));
  EXPECT_THAT(found.beyond[0].text(), HasSubstr("on rank 1"));
}

/// A copy that alone is wrong.
TEST_F(StepRounding, EachCopyIsCompared) {
  auto run = record(placed(values(), "[a=R]"));
  run.optimizer[0].value = placed(values(), "[a=R]");
  sharded(run.optimizer[0].value).shards()->whole()[1].mul_(2);
  const auto found = compared(run);
  ASSERT_EQ(found.beyond.size(), 1u);
  EXPECT_EQ(found.beyond[0].ranks, std::vector<int>{1});
}

TEST_F(StepRounding, WhatIsNotANumberIsBeyondAnything) {
  auto spoiled = values();
  spoiled[3][0] = NAN;
  const auto found = compared(record(placed(spoiled)));
  EXPECT_EQ(found.beyond.size(), 3u);
  EXPECT_EQ(compared(record(placed(values()), NAN)).beyond.size(), 1u);
}

TEST_F(StepRounding, LossAndNormFollowFromTheirParts) {
  // Losses that are 0.25 apart each are so in the mean as well, and gradients of 128 elements by no more than 0.25 *
  // sqrt(128).
  EXPECT_TRUE(compared(record(placed(values()), 5.25)).agrees());
  EXPECT_EQ(compared(record(placed(values()), 8)).beyond.at(0).text().substr(0, 26), "loss = 8, in double: 5 (re");
  EXPECT_TRUE(compared(record(placed(values()), 5, 7 + 0.25 * std::sqrt(128))).agrees());
  EXPECT_EQ(compared(record(placed(values()), 5, 30)).beyond.at(0).kind, "gradient norm");
}

TEST_F(StepRounding, AnotherNumberOfTokensIsNoRounding) {
  auto run = record(placed(values()));
  run.valid_tokens = 63;
  EXPECT_EQ(compared(run).beyond.at(0).kind, "valid tokens");
}

/// A rate is the job's; a clip may be off as the norm that it comes from is.
TEST_F(StepRounding, WhatTheOptimizerIsToldIsCompared) {
  const auto told = [&](double rate, double scale) {
    auto record = this->record(placed(values()), 5, 1000);
    record.scalars = {{"learning_rate", rate}, {"gradient_scale", scale}};
    return record;
  };
  exact_ = record(one_rank(values()), 5, 1000);
  exact_.scalars = {{"learning_rate", 0.1}, {"gradient_scale", 0.5}};
  EXPECT_TRUE(compared(told(0.1, 0.5)).agrees());
  EXPECT_EQ(compared(told(0.1 + 1e-12, 0.5)).beyond.at(0).kind, "learning_rate");
  const double of_norm = 0.25 * std::sqrt(128) * largest_ratio_of_lengths(128) / 1000;
  EXPECT_TRUE(compared(told(0.1, 0.5 * (1 + 0.9 * of_norm))).agrees());
  EXPECT_EQ(compared(told(0.1, 0.5 * (1 + 1.1 * of_norm))).beyond.at(0).kind, "gradient_scale");
}

/// Losses that are no whole sums, or of other tokens, are left out, and the loss is not.
TEST_F(StepRounding, LossesOfOtherTokensAreLeftOut) {
  auto run = record(placed(values()));
  run.token_losses[0].value = placed(values() * 2, "[a=P(sum)]");
  EXPECT_EQ(compared(run).values, 2 * 128 + 3);
  run.token_losses.clear();
  run.loss = 8;
  EXPECT_EQ(compared(run).beyond.at(0).kind, "loss");
}

/// Each element of a product is moved by what the product's bound allows, up or down; a view rounds nothing.
TEST(Roundings, AreAsLargeAsTheBoundAllows) {
  const auto world = testing::simulated_world({{"a", 1}}, {.domain = Domain::kFloat64});
  const auto& mesh = world->mesh("a=1");
  const auto put = [&](const at::Tensor& plain) { return distribute(plain, Layout::replicated(mesh)); };
  const auto left = put(testing::exact_tensor({20, 30})), right = put(testing::exact_tensor({30, 40}));
  const auto exact = gather(at::mm(left, right));
  Roundings roundings;
  const ObserverScope scope(world->observers(), roundings);
  const auto viewed = left.view({600});
  EXPECT_EQ(roundings.rounded_values(), 0);
  const auto shaken = gather(at::mm(left, right));
  EXPECT_EQ(roundings.rounded_values(), 800);
  const PlainTensors guard;
  const double n = 32 * 0x1p-24;
  const auto bound = at::mm(gather(left).abs(), gather(right).abs()) * (n / (1 - n));
  const auto moved = shaken - exact;
  EXPECT_LT((moved.abs() / bound - 1).abs().max().item<double>(), 1e-5);
  const auto up = (moved > 0).sum().item<int64_t>();
  EXPECT_GT(up, 330);
  EXPECT_LT(up, 470);
}

}  // namespace
}  // namespace lockstep
