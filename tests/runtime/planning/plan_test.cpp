// What a plan says of itself, and what its dimensions are called.
#include "runtime/planning/plan.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "fuzz/cases/tensors.h"
#include "runtime/planning/op_sharding.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

TEST(Plan, SaysHowOperandsAndResultsLie) {
  const auto world = testing::simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  const auto spec = [&](const char* layout) {
    return mesh.specs().intern(Layout::parse(mesh, layout), {4, 2}, c10::kFloat);
  };
  Plan plan;
  plan.wanted = {spec("[tp=S(0)]"), nullptr};
  plan.results = {spec("[tp=S(1)]"), spec("[tp=R]"), spec("[tp=P(sum)]")};
  EXPECT_EQ(layouts_of(plan), "[tp=S(0)], plain -> [tp=S(1)], [tp=R], [tp=P(sum)]");
}

/// On an axis of one rank, too, what is cut stays so beside a large tensor that is not: gradients know samples by it.
TEST(Plan, OfOneRankKeepsCutsAsThatOfTwoDoes) {
  for (const int64_t ranks : {1, 2}) {
    const auto world = testing::simulated_world({{"dp", ranks}});
    const auto& mesh = world->mesh(fmt::format("dp={}", ranks));
    const auto on_mesh = [&](const char* layout) {
      return distribute(at::ones({4, 2048}), Layout::parse(mesh, layout));
    };
    const auto sum = on_mesh("[dp=S(0)]") + on_mesh("[dp=R]");
    EXPECT_EQ(layout_of(sum).text(), "[dp=S(0)]") << ranks;
  }
}

/// More dimensions than there are letters: each still has a label of its own, no letter's, and the same in both.
TEST(OpSharding, NamesEveryDimensionOfDots) {
  const std::vector<int64_t> sizes(30, 2);
  const auto sharding = parse_op_sharding("...a,...a->...a", {sizes, sizes}, {sizes});
  std::set<int> labels;
  for (const auto& dim : sharding.results[0]) labels.insert(dim.label);
  EXPECT_EQ(labels.size(), sizes.size());
  EXPECT_EQ(*labels.begin(), 0) << "a";
  EXPECT_EQ(*std::next(labels.begin()), 26) << "the last of ...";
  for (size_t d = 0; d < sizes.size(); ++d) EXPECT_EQ(sharding.operands[1][d].label, sharding.results[0][d].label) << d;
}

}  // namespace
}  // namespace lockstep
