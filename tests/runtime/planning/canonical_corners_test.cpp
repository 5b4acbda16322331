// Canonical numerics where random operands hardly come: signed zeros, complex numbers, sums in another dtype than their
// summands', summands times 0.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "core/error.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

using at::Tensor;
using Op = std::function<Tensor(const std::vector<Tensor>&)>;

/// Of operands that are cut along `dim`, or whole where it is -1.
Tensor on(int64_t ranks, int dim, const std::vector<Tensor>& operands, const Op& op) {
  const auto world = simulated_world({{"a", ranks}}, {.numerics = lockstep::Numerics::kCanonical});
  const auto& mesh = world->mesh({{"a", ranks}});
  const auto layout = Layout::parse(mesh, dim < 0 ? "[]" : fmt::format("[a=S({})]", dim));
  std::vector<Tensor> there;
  for (const auto& operand : operands) there.push_back(distribute(operand, layout));
  return gather(op(there)).clone();
}

bool same_bits(const Tensor& x, const Tensor& y) {
  if (x.sizes() != y.sizes() || x.scalar_type() != y.scalar_type()) return false;
  if (x.is_complex()) return same_bits(at::view_as_real(x), at::view_as_real(y));
  return x.equal(y) && at::signbit(x).equal(at::signbit(y));
}

void expect_same_bits(const std::vector<Tensor>& operands, const Op& op) {
  const auto one = on(1, -1, operands, op);
  for (const int64_t ranks : {2, 3})
    for (int dim = -1; dim < operands[0].dim(); ++dim)
      EXPECT_TRUE(same_bits(on(ranks, dim, operands, op), one)) << ranks << " ranks, dimension " << dim;
}

TEST(CanonicalCorners, OneOfTwoZerosWhereverTheyLie) {
  const auto zeros = at::zeros({6, 37}), less = at::neg(zeros);
  const auto mixed = at::where(at::arange(6 * 37).reshape({6, 37}).remainder(3).eq(0), less, zeros);
  for (const auto& [x, y] : {std::pair{less, zeros}, {zeros, less}, {mixed, less}, {less, mixed}}) {
    expect_same_bits({x, y}, [](const auto& all) { return at::maximum(all[0], all[1]); });
    expect_same_bits({x, y}, [](const auto& all) { return at::minimum(all[0], all[1]); });
    expect_same_bits({x, y}, [](const auto& all) { return at::clamp_min(all[0], all[1]); });
    expect_same_bits({x, y}, [](const auto& all) { return at::clamp_max(all[0], all[1]); });
    expect_same_bits({x, y}, [](const auto& all) { return at::clamp(all[0], all[1], all[1]); });
    for (const int64_t dim : {0, 1}) {
      expect_same_bits({x}, [&](const auto& all) { return at::amax(all[0], dim); });
      expect_same_bits({x}, [&](const auto& all) { return at::amin(all[0], dim); });
    }
  }
}

TEST(CanonicalCorners, AMedianOfBothZerosIsPositive) {
  const auto mixed = at::where(at::arange(33).remainder(3).eq(0), at::zeros({33}), at::neg(at::zeros({33})));
  for (const auto& x : {mixed, at::neg(mixed)}) {
    EXPECT_FALSE(at::signbit(on(1, -1, {x}, [](const auto& all) { return at::median(all[0]); })).item<bool>());
    EXPECT_FALSE(at::signbit(on(1, -1, {x}, [](const auto& all) { return at::nanmedian(all[0]); })).item<bool>());
  }
}

/// LibTorch's vector loops and scalar tails give two values of these.
TEST(CanonicalCorners, NaNWhereverItLies) {
  const auto nan = at::full({4, 37}, std::nan("")), ones = at::ones({4, 37});
  const auto all_alike = [&](const Op& op) {
    const auto result = on(1, -1, {ones, nan}, op).nan_to_num(7);
    EXPECT_TRUE(same_bits(result, result.flatten()[0].expand({4, 37}).clone())) << result;
  };
  all_alike([](const auto& x) { return at::hardshrink(x[1]); });
  all_alike([](const auto& x) { return at::hardshrink_backward(x[0], x[1], 0.5); });
  all_alike([](const auto& x) { return at::softshrink_backward(x[0], x[1], 0.5); });
  all_alike([](const auto& x) { return at::hardtanh_backward(x[0], x[1], -1, 1); });
}

/// Instructions give NaNs of either sign, and moves may change it.
TEST(CanonicalCorners, TheSignOfANaNIsNone) {
  const auto nan = at::full({4, 37}, std::nan("")), ones = at::ones({4, 37});
  const auto values = at::cat({nan, at::copysign(nan, -1), ones.neg(), ones}, 1);
  const auto is_negative = at::cat({at::zeros({4, 74}), at::ones({4, 37}), at::zeros({4, 37})}, 1);
  for (const int64_t ranks : {1, 2}) {
    EXPECT_TRUE(
        on(ranks, 0, {values}, [](const auto& all) { return at::signbit(all[0]); }).equal(is_negative.to(at::kBool)));
    const auto signs =
        on(ranks, 0, {ones.repeat({1, 4}), values}, [](const auto& all) { return at::copysign(all[0], all[1]); });
    EXPECT_TRUE(signs.equal(1 - 2 * is_negative));
    const auto written =
        on(ranks, 0, {ones.repeat({1, 4}), values}, [](const auto& all) { return all[0].copysign_(all[1]); });
    EXPECT_TRUE(written.equal(signs));
  }
}

Tensor complex_numbers(int64_t count, double step) {
  return at::complex(at::arange(count, at::kFloat).mul(step).sin(), at::arange(count, at::kFloat).mul(step).cos());
}

TEST(CanonicalCorners, ProductsOfComplexNumbers) {
  const auto x = complex_numbers(37, 0.7), y = complex_numbers(37, 1.3);
  expect_same_bits({x, y}, [](const auto& all) { return at::mul(all[0], all[1]); });
  expect_same_bits({x}, [](const auto& all) { return at::mul(all[0], c10::complex<double>(0.3, 0.7)); });
  EXPECT_TRUE(at::allclose(on(2, 0, {x, y}, [](const auto& all) { return at::mul(all[0], all[1]); }), at::mul(x, y)));
}

TEST(CanonicalCorners, OtherArithmeticOfComplexNumbersIsRefused) {
  const auto x = complex_numbers(37, 0.7);
  const auto refused = [&](const Op& op) { EXPECT_THROW(on(2, 0, {x, x}, op), BadInput); };
  refused([](const auto& all) { return at::sum(all[0]); });
  refused([](const auto& all) { return at::mean(all[0]); });
  refused([](const auto& all) { return at::div(all[0], all[1]); });
  refused([](const auto& all) { return at::addcmul(all[0], all[1], all[1]); });
  refused([](const auto& all) { return at::pow(all[0], 2); });
  refused([](const auto& all) { return at::add(all[0], all[1], 2); });
}

TEST(CanonicalCorners, SumsInTheDtypeThatIsAskedFor) {
  const auto odd = at::arange(256, at::kLong) * 1'234'566 + (int64_t{1} << 26) + 1;
  const auto in_float = [](const auto& all) { return at::sum(all[0], at::kFloat); };
  expect_same_bits({odd}, in_float);
  const auto wide = at::arange(256, at::kFloat).sin() * at::pow(10, at::arange(256, at::kFloat).remainder(15));
  const auto in_double = [](const auto& all) { return at::sum(all[0], at::kDouble); };
  expect_same_bits({wide}, in_double);
  EXPECT_TRUE(at::allclose(on(1, -1, {wide}, in_double), wide.sum(c10::make_optional(at::kDouble)), 1e-14));
  const auto many = at::arange(4096, at::kDouble).reshape({256, 16}).sin();
  expect_same_bits({many}, [](const auto& all) { return at::sum(all[0], {0}, false, at::kFloat); });
  const auto in_integers = [](const auto& all) { return at::sum(all[0], at::kLong); };
  EXPECT_EQ(on(1, -1, {at::full({256}, 0.75F)}, in_integers).item<int64_t>(), 0);
}

TEST(CanonicalCorners, ASummandTimesZeroIsNotRead) {
  const auto nan = at::full({4, 5}, std::numeric_limits<float>::quiet_NaN());
  const auto x = exact_tensor({4, 3}, at::kFloat), y = exact_tensor({3, 5}, at::kFloat);
  const auto product = [&](const auto& all) {
    const auto right = distribute(y, Layout::replicated(spec_of(all[0]).layout.mesh()));
    return at::addmm(all[0], all[1], right, 0);
  };
  for (const int dim : {-1, 0}) EXPECT_TRUE(on(2, dim, {nan, x}, product).equal(at::mm(x, y)));
}

TEST(CanonicalCorners, AnIndexMayHaveNoDimensions) {
  const auto x = exact_tensor({3}, at::kFloat), index = at::scalar_tensor(1, at::kLong), source = at::ones({});
  const auto add = [](const auto& all) { return at::scatter_add(all[0], 0, all[1], all[2]); };
  EXPECT_TRUE(on(2, -1, {x, index, source}, add).equal(at::scatter_add(x, 0, index, source)));
}

}  // namespace
}  // namespace lockstep::testing
