// Whether what a step left is what there was before it.
#include "trainer/verify/step_record.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"

namespace lockstep::trainer {
namespace {

using lockstep::testing::exact_tensor;

/// A parameter of six elements: before a step on one device, after it on two ranks.
class Unchanged : public ::testing::Test {
 protected:
  static TrainingState on(World& world, const char* mesh, const char* layout, const at::Tensor& value) {
    const models::Division whole({6}, {{"w", 6, {}}});
    return {{"w", distribute(value, Layout::parse(world.mesh(mesh), layout)), true, {}, whole}};
  }
  bool is_unchanged_as(const at::Tensor& value, std::vector<int> ranks, const char* kind = "parameter") const {
    Difference difference;
    difference.kind = kind, difference.name = "w", difference.ranks = std::move(ranks);
    return is_unchanged(difference, on(*one_, "one=1", "[one=R]", exact_tensor({6})),
                        on(*two_, "tp=2", "[tp=S(0)]", value));
  }

  std::unique_ptr<World> one_ = testing::simulated_world({{"one", 1}}), two_ = testing::simulated_world({{"tp", 2}});
};

TEST_F(Unchanged, IsWhatEveryWrongRankHoldsAsBefore) {
  const auto before = exact_tensor({6});
  auto second = before.clone();
  second[4] += 1;  // rank 1's
  EXPECT_TRUE(is_unchanged_as(before, {}));
  EXPECT_TRUE(is_unchanged_as(before, {1}));
  EXPECT_FALSE(is_unchanged_as(second, {}));
  EXPECT_FALSE(is_unchanged_as(second, {1}));
  EXPECT_TRUE(is_unchanged_as(second, {0}));
  EXPECT_FALSE(is_unchanged_as(before, {}, "gradient"));
}

}  // namespace
}  // namespace lockstep::trainer
