// Along which mesh axis values are wrong, and whose they are instead.
#include "consistency/place_on_mesh.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "consistency/origin.h"
#include "consistency/traced_op.h"
#include "fuzz/cases/tensors.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// dp=2,tp=3: rank = 3 * dp + tp.
class PlaceOnMesh : public ::testing::Test {
 protected:
  Blame placed(std::vector<int> ranks, const std::vector<std::vector<int>>& hints = {}) const {
    Blame blame{.ranks = std::move(ranks)};
    place_on_mesh(blame, mesh_, hints);
    return blame;
  }

  std::unique_ptr<World> world_ = testing::simulated_world({{"dp", 2}, {"tp", 3}});
  const Mesh& mesh_ = world_->mesh({{"dp", 2}, {"tp", 3}});
};

TEST_F(PlaceOnMesh, IsTheAxisWhoseCoordinateTellsWhoIsWrong) {
  const auto along_tp = placed({1, 4});
  EXPECT_EQ(along_tp.axis, "tp");
  EXPECT_EQ(along_tp.group, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(placed({1, 2, 4, 5}).axis, "tp");
  const auto along_dp = placed({3, 4, 5});
  EXPECT_EQ(along_dp.axis, "dp");
  EXPECT_EQ(along_dp.group, (std::vector<int>{0, 3}));
}

TEST_F(PlaceOnMesh, IsNoneWhereItDependsOnBoth) {
  EXPECT_EQ(placed({1}).axis, "");
  EXPECT_EQ(placed({1, 3}).axis, "");
  EXPECT_TRUE(placed({1}).group.empty());
}

TEST_F(PlaceOnMesh, IsTheOnlyOneOfAHintWhereRanksDoNotTell) {
  const auto everywhere = placed({});
  EXPECT_EQ(everywhere.ranks, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(everywhere.axis, "");
  EXPECT_EQ(placed({}, {{1}, {0}}).axis, "tp");
  EXPECT_EQ(placed({}, {{0, 1}, {0}}).axis, "dp");
  EXPECT_EQ(placed({}, {{0, 1}}).axis, "");
  EXPECT_EQ(placed({3, 4, 5}, {{1}}).axis, "dp") << "what ranks tell comes first";
}

TEST_F(PlaceOnMesh, IsTheOnlyAxisThatHasSeveralRanks) {
  const auto world = testing::simulated_world({{"dp", 1}, {"tp", 2}});
  Blame blame;
  place_on_mesh(blame, world->mesh({{"dp", 1}, {"tp", 2}}), {});
  EXPECT_EQ(blame.axis, "tp");
}

TEST_F(PlaceOnMesh, ReadsLayouts) {
  const auto layout = Layout::parse(mesh_, "[dp=S(0), tp=P(sum)]");
  EXPECT_EQ(cut_axes(layout), std::vector<int>{0});
  EXPECT_EQ(partial_axes(layout), std::vector<int>{1});
}

TEST_F(PlaceOnMesh, NamesAllThatShareAWrongSum) {
  const auto whole = testing::exact_tensor({4, 6});
  const auto tensor = distribute(whole, Layout::parse(mesh_, "[dp=S(0), tp=P(sum)]"));
  sharded(tensor).shards()->local_tensors()[4].add_(1);
  EXPECT_EQ(difference_of(all_shards(local_shards(tensor)), whole, 0).ranks, (std::vector<int>{3, 4, 5}));
}

// Where wrong values come from

class Origin : public PlaceOnMesh {
 protected:
  /// Every value once.
  static at::Tensor numbers() { return at::arange(36, at::kFloat).view({6, 6}).square().add(1); }
  at::Tensor cut() const { return distribute(numbers(), Layout::parse(mesh_, "[dp=R, tp=S(0)]")); }
  static std::string pattern_of(const at::Tensor& tensor) {
    return difference_of(all_shards(local_shards(tensor)), numbers(), kBits).pattern;
  }
};

TEST_F(Origin, IsTheRankWhosePartAnotherHas) {
  const auto tensor = cut();
  auto& shards = sharded(tensor).shards()->local_tensors();
  shards[1].copy_(shards[0]);
  EXPECT_EQ(pattern_of(tensor), "the values of rank 0, in [2:4, 0:6]");
  shards[2].copy_(shards[0]);
  EXPECT_EQ(pattern_of(tensor), "the values of rank 0, in [2:6, 0:6]");
}

TEST_F(Origin, OfTwoThatWereSwappedIsSaidInGeneral) {
  const auto tensor = cut();
  auto& shards = sharded(tensor).shards()->local_tensors();
  const auto first = shards[0].clone();
  shards[0].copy_(shards[1]);
  shards[1].copy_(first);
  EXPECT_EQ(pattern_of(tensor), "the values of other ranks, in [0:4, 0:6]");
}

TEST_F(Origin, IsNotGuessed) {
  const auto tensor = cut();
  auto& shards = sharded(tensor).shards()->local_tensors();
  shards[1].copy_(shards[0] + 0.5);
  EXPECT_EQ(pattern_of(tensor), "in [2:4, 0:6]");
  const auto ones = distribute(at::ones({6, 6}), Layout::parse(mesh_, "[dp=R, tp=S(0)]"));
  sharded(ones).shards()->local_tensors()[1].mul_(3);
  EXPECT_EQ(difference_of(all_shards(local_shards(ones)), at::ones({6, 6}), kBits).pattern, "times 3, in [2:4, 0:6]");
}

/// What an all-gather puts where another rank's piece belongs.
TEST_F(Origin, OfAMoveIsToldByHowItLayBefore) {
  const auto before = cut();
  const auto after = distribute(numbers(), Layout::replicated(mesh_));
  auto& copies = sharded(after).shards()->local_tensors();
  copies[4].narrow(0, 2, 2).copy_(numbers().narrow(0, 4, 2));
  auto held = all_shards(local_shards(after));
  held.source = &spec_of(before);
  const auto difference = difference_of(held, numbers(), kBits);
  EXPECT_EQ(difference.pattern, "the values of rank 2, in [2:4, 0:6]");
  EXPECT_EQ(difference.ranks, std::vector<int>{4});
}

TEST_F(Origin, IsWhatStoodThereBefore) {
  const auto tensor = cut();
  auto held = all_shards(local_shards(tensor));
  const auto now = numbers().sqrt();
  held.old_values = digests_of(held);
  for (size_t r = 0; r < held.ranks.size(); ++r)
    if (held.ranks[r] != 2) held.shards[r] = part_of(*held.spec, now, held.ranks[r]);
  const auto difference = difference_of(held, now, kBits);
  EXPECT_EQ(difference.pattern, "old values, in [4:6, 0:6]");
  EXPECT_EQ(difference.ranks, std::vector<int>{2});
  held.old_values[2] = {};
  EXPECT_EQ(difference_of(held, now, kBits).pattern, "in [4:6, 0:6]");
}

}  // namespace
}  // namespace lockstep
