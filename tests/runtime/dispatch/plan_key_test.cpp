// What a plan depends on is in its key: calls that look alike and are not get plans of their own.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep {
namespace {

using testing::same_bits;
using testing::simulated_world;

TEST(PlanKey, HoldsTheDtypeOfANumber) {
  const auto world = simulated_world({{"tp", 2}});
  const auto plain = at::arange(6);
  const auto integers = distribute(plain, Layout::parse(world->mesh("tp=2"), "[tp=S(0)]"));
  for (const auto& number : {at::scalar_tensor(2, at::kLong), at::scalar_tensor(2.5, at::kFloat),
                             at::scalar_tensor(2.5, at::kDouble), at::scalar_tensor(3, at::kLong)}) {
    const auto sum = integers + number, expected = plain + number;
    EXPECT_EQ(sum.scalar_type(), expected.scalar_type()) << number;
    EXPECT_TRUE(same_bits(gather(sum), expected)) << number;
  }
}

/// A real and a complex factor are arguments of one place: plans of one would give the other's dtype.
TEST(PlanKey, TellsComplexNumbersFromRealOnes) {
  const auto world = simulated_world({{"tp", 2}});
  const auto plain = testing::exact_tensor({6});
  const auto x = distribute(plain, Layout::parse(world->mesh("tp=2"), "[tp=S(0)]"));
  for (const at::Scalar& factor : {at::Scalar(2.5), at::Scalar(c10::complex<double>(2.5, 1)), at::Scalar(3.5),
                                   at::Scalar(c10::complex<double>(0, -1)), at::Scalar(2)}) {
    const auto product = at::mul(x, factor), expected = at::mul(plain, factor);
    EXPECT_EQ(product.scalar_type(), expected.scalar_type()) << factor;
    EXPECT_TRUE(same_bits(gather(product), expected)) << factor;
  }
}

/// Sums over the rows of a batch, which scopes say to be of so many samples.
class BatchSums {
 public:
  explicit BatchSums(int64_t ranks)
      : world_(simulated_world({{"dp", ranks}}, {.numerics = Numerics::kCanonical})),
        x_(distribute(testing::exact_tensor({96, 3}, at::kFloat).mul(0.1),
                      Layout::parse(world_->mesh({{"dp", ranks}}), ranks == 1 ? "[]" : "[dp=S(0)]"))) {}

  at::Tensor of(int64_t samples) const {
    const BatchScope batch({.count = samples});
    return gather(at::sum(x_, {0}));
  }

 private:
  std::unique_ptr<World> world_;
  at::Tensor x_;
};

TEST(PlanKey, HoldsTheRowsOfTheBatch) {
  const BatchSums cut(2);
  bool any_other = false;
  for (const int64_t samples : {96, 2, 0, 4, 96}) {
    const auto expected = BatchSums(1).of(samples);  // a World that knows no other batch
    EXPECT_TRUE(same_bits(cut.of(samples), expected)) << samples << " samples";
    any_other |= !same_bits(expected, BatchSums(1).of(96));
  }
  EXPECT_TRUE(any_other) << "all trees give the same bits: this compares nothing";
}

TEST(Writes, AreRefusedWhereAnOperandDoesNotBroadcast) {
  const auto world = simulated_world({{"tp", 2}});
  const auto& mesh = world->mesh("tp=2");
  auto x = distribute(testing::exact_tensor({1, 4}), Layout::parse(mesh, "[tp=S(1)]"));
  const auto mask = distribute(at::ones({2}, at::kBool), Layout::replicated(mesh));
  try {
    x.masked_fill_(mask, 7);
    FAIL() << "accepted: the mask is as long as a shard, not as the tensor";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "masked_fill.Scalar: operand 1 of sizes [2] cannot be broadcast to what is written, [1, 4]");
  }
  EXPECT_TRUE(same_bits(gather(x), testing::exact_tensor({1, 4})));
}

}  // namespace
}  // namespace lockstep
