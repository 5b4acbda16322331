// Float-valued ops of integers in the float64 domain: computed in double, not in LibTorch's float32.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

TEST(IntegerOperands, AreWidenedBeforeAFloatValuedOp) {
  World::Options options;
  options.domain = Domain::kFloat64;
  const auto world = testing::simulated_world({{"tp", 2}}, options);
  const auto& mesh = world->mesh("tp=2");
  const auto plain = at::arange(1, 6), other = at::full({5}, 3, at::kLong);
  const auto x = distribute(plain, Layout::parse(mesh, "[tp=S(0)]"));
  const auto check = [](const at::Tensor& actual, const at::Tensor& expected) {
    EXPECT_EQ(actual.scalar_type(), c10::kFloat);
    EXPECT_TRUE(testing::same_bits(gather(actual), expected));
  };
  check(at::sqrt(x), at::sqrt(plain.to(c10::kDouble)));
  check(at::exp(x), at::exp(plain.to(c10::kDouble)));
  check(at::sigmoid(x), at::sigmoid(plain.to(c10::kDouble)));
  check(at::rsqrt(x), at::rsqrt(plain.to(c10::kDouble)));
  check(at::div(x, distribute(other, layout_of(x))), at::div(plain.to(c10::kDouble), 3));
  check(at::mul(x, 0.1), at::mul(plain.to(c10::kDouble), 0.1));
  EXPECT_EQ(at::add(x, x).scalar_type(), c10::kLong);
}

/// What is cut off of each part of a sum is not what is cut off of the sum: refused, or right.
TEST(IntegerOperands, TakeNoPartsOfFloats) {
  const auto world = testing::simulated_world({{"tp", 2}}, {.numerics = Numerics::kNative});
  const auto& mesh = world->mesh("tp=2");
  const auto plain = at::arange(1, 6, at::kFloat) / 4;
  int taken = 0;
  for (const char* target : {"[tp=P(sum)]", "[tp=R]", "[tp=S(0)]"}) {
    const auto parts = at::mul(distribute(plain * 2, Layout::parse(mesh, "[tp=P(sum)]")), 0.5);
    const auto x = distribute(at::zeros({5}, at::kLong), Layout::parse(mesh, target));
    try {
      at::Tensor(x).copy_(parts);
    } catch (const BadInput&) {
      continue;
    }
    ++taken;
    EXPECT_TRUE(testing::same_bits(gather(x), plain.to(at::kLong))) << target;
  }
  EXPECT_GE(taken, 2) << "whole and cut targets, at least";
}

}  // namespace
}  // namespace lockstep
