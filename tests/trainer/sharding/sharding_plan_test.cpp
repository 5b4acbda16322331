// Where parameters lie at rest: cut by all data-parallel ranks, evenly where their sizes let them.
#include "trainer/sharding/sharding_plan.h"

#include <gtest/gtest.h>

#include "models/families/moe.h"
#include "models/module.h"
#include "runtime/context/world.h"
#include "runtime/tensor/spec.h"

namespace lockstep::trainer {
namespace {

/// The layout at rest, and what a rank holds at most, of one parameter of a small mixture of eight experts.
struct AtRest {
  std::string layout;
  int64_t largest = 0;
};

AtRest at_rest(const char* mesh, const char* name) {
  const auto degrees = parse_mesh(mesh);
  World world({.rank_count = static_cast<int>(degrees.ranks())});
  const ShardingPlan plan(world.mesh(mesh_axes(degrees)), axis_rules(degrees));
  models::Moe model(models::moe_flavor("debugmodel"));
  for (const auto* parameter : model.parameters())
    if (parameter->name().ends_with(name)) {
      const auto layout = plan.stored(*parameter);
      AtRest result{layout.text()};
      for (const auto& sizes : plan.mesh().specs().intern(layout, parameter->sizes(), c10::kFloat)->local_sizes)
        result.largest = std::max(result.largest, c10::multiply_integers(sizes));
      return result;
    }
  ADD_FAILURE() << name;
  return {};
}

constexpr const char* kExperts = "layers.0.moe.experts.w1";

TEST(ShardingPlan, CutsTheFirstDimensionOverWhatIsLeft) {
  EXPECT_EQ(at_rest("dp_shard=4", kExperts).layout, "[dp_shard=S(0)]");
  EXPECT_EQ(at_rest("dp_shard=4,ep=4", kExperts).layout, "[dp_shard=S(0)]");
  EXPECT_EQ(at_rest("dp_shard=4,ep=2", kExperts).layout, "[dp_shard=S(0)@1, dp_shard_in_ep=S(0)@0]");
}

TEST(ShardingPlan, CutsTheSecondWhereTheFirstIsTooShort) {
  EXPECT_EQ(at_rest("dp_shard=16", kExperts).layout, "[dp_shard=S(1)]");
  EXPECT_EQ(at_rest("dp_shard=16,ep=8", kExperts).layout, "[dp_shard=S(1), dp_shard_in_ep=S(0)]");
  EXPECT_EQ(at_rest("dp_shard=4,tp=4,ep=4", kExperts).layout, "[dp_shard=S(1), tp=S(0)]");
  EXPECT_EQ(at_rest("dp_shard=16", "layers.0.attention_norm.weight").layout, "[dp_shard=S(0)]");
}

TEST(ShardingPlan, GivesARankItsShareOfExperts) {
  const int64_t whole = at_rest("one device", kExperts).largest;
  for (const char* mesh : {"dp_shard=4", "dp_shard=4,ep=2", "dp_shard=16", "dp_shard=16,ep=8", "dp_shard=4,tp=4,ep=4",
                           "dp_shard=2,cp=2,tp=2,ep=8"})
    EXPECT_EQ(at_rest(mesh, kExperts).largest * parse_mesh(mesh).ranks(), whole) << mesh;
}

}  // namespace
}  // namespace lockstep::trainer
