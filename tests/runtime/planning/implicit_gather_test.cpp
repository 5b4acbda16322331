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

/// What is written stays where it is, so the other operands move, even from one cut to another.
TEST(ImplicitGather, IsOfWhatLiesOtherwiseThanWhatIsWritten) {
  const auto world = testing::simulated_world({{"a", 2}});
  const auto& mesh = world->mesh("a=2");
  const auto written = distribute(exact_tensor({4, 6}), Layout::parse(mesh, "[a=S(0)]"));
  const auto other = distribute(exact_tensor({4, 6}), Layout::parse(mesh, "[a=S(1)]"));
  written.add_(other);
  EXPECT_TRUE(testing::same_bits(gather(written), exact_tensor({4, 6}) * 2));
  EXPECT_EQ(spec_of(written).layout.text(), "[a=S(0)]");
  EXPECT_EQ(world->traffic().implicit_gathers().size(), 1U);
}

TEST(ImplicitGather, OfAnotherCutThanWhatIsWrittenIsRefusedWhereStrict) {
  World::Options options;
  options.policy.strict = true;
  const auto world = testing::simulated_world({{"a", 2}}, options);
  const auto& mesh = world->mesh("a=2");
  const auto written = distribute(exact_tensor({4, 6}), Layout::parse(mesh, "[a=S(0)]"));
  const auto other = distribute(exact_tensor({4, 6}), Layout::parse(mesh, "[a=S(1)]"));
  EXPECT_THROW(written.add_(other), BadInput);
  EXPECT_TRUE(testing::same_bits(gather(written), exact_tensor({4, 6})));
}

/// LibTorch's meta kernels give empty vectors for what is not asked for, and take what has too few dimensions.
TEST(Dims, OfWhatIsNotAskedForAreNone) {
  const auto world = testing::simulated_world({{"a", 2}});
  const auto& mesh = world->mesh("a=2");
  const auto batch = distribute(exact_tensor({2, 3, 3}), Layout::parse(mesh, "[a=S(0)]"));
  EXPECT_EQ(at::linalg_svdvals(batch).sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(at::linalg_eigvalsh(batch).sizes(), at::IntArrayRef({2, 3}));
}

TEST(Dims, OfComplexMagnitudesAreReal) {
  const auto world = testing::simulated_world({{"a", 2}});
  const auto real = distribute(exact_tensor({4}), Layout::parse(world->mesh("a=2"), "[a=S(0)]"));
  EXPECT_TRUE(testing::same_bits(gather(at::abs(at::complex(real, at::zeros_like(real)))), exact_tensor({4}).abs()));
}

}  // namespace
}  // namespace lockstep
