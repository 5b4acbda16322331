// Why an op gathers what lies cut: the reason is counted, and stands in the error where the policy is strict.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using testing::exact_tensor;

std::unique_ptr<World> canonical_world(bool strict = false) {
  World::Options options;
  options.numerics = Numerics::kCanonical;
  options.policy.strict = strict;
  return testing::simulated_world({{"tp", 3}}, options);
}

at::Tensor product_on(World& world, int64_t size) {
  const auto& mesh = world.mesh("tp=3");
  return at::mm(distribute(exact_tensor({4, size}), Layout::parse(mesh, "[tp=S(1)]")),
                distribute(exact_tensor({size, 5}), Layout::parse(mesh, "[tp=S(0)]")));
}

TEST(ImplicitGather, SaysWhereACutFallsInsideALeaf) {
  const auto world = canonical_world();
  product_on(*world, 100);
  const auto& gathers = world->traffic().implicit_gathers();
  EXPECT_EQ(gathers.at({"mm", "[tp=S(1)] cuts 100 at 34, inside a leaf of 50"}), 1);
}

TEST(ImplicitGather, IsNoneWhereTheCutIsBetweenLeaves) {
  const auto world = canonical_world();
  const auto& mesh = world->mesh("tp=3");
  at::mm(distribute(exact_tensor({4, 192}), Layout::parse(mesh, "[tp=S(1:48)]")),
         distribute(exact_tensor({192, 5}), Layout::parse(mesh, "[tp=S(0:48)]")));
  EXPECT_TRUE(world->traffic().implicit_gathers().empty());
}

/// Only one sum can stay open: of a sum over rows and columns, each cut by an axis, one is finished first.
TEST(ImplicitGather, IsOfTheSecondOfTwoSums) {
  World::Options options;
  options.numerics = Numerics::kCanonical;
  const auto world = testing::simulated_world({{"a", 2}, {"b", 2}}, options);
  const auto plain = exact_tensor({128, 128}).mul(0.37);
  const auto cut = distribute(plain, Layout::parse(world->mesh("a=2,b=2"), "[a=S(0:64), b=S(1:64)]"));
  const auto whole = distribute(plain, Layout::parse(world->mesh("a=2,b=2"), "[a=R, b=R]"));
  EXPECT_TRUE(testing::same_bits(gather(cut.sum(at::IntArrayRef({0, 1}))), gather(whole.sum(at::IntArrayRef({0, 1})))));
  EXPECT_EQ(world->traffic().implicit_gathers().size(), 1U);
}

TEST(ImplicitGather, StrictErrorsGiveTheReason) {
  const auto world = canonical_world(/*strict=*/true);
  try {
    product_on(*world, 100);
    ADD_FAILURE();
  } catch (const BadInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("inside a leaf of 50"));
  }
}

}  // namespace
}  // namespace lockstep
