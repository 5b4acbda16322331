// The two passes of a gradient norm give their oracles' integers on every instruction set; broken on purpose they do
// not.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <vector>

#include "runtime/kernels/sums/integer_sum_loops.h"
#include "runtime/kernels/sums/integer_sum_oracle.h"
#include "tests/support/cases/sum_cases.h"
#include "tests/support/instruction_sets.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

namespace loops = kernels::loops;

/// Lengths about a vector, several, and a block of 4096.
int64_t any_length() {
  return *rc::gen::weightedOneOf<int64_t>({{3, rc::gen::inRange<int64_t>(0, 100)},
                                           {1, rc::gen::inRange<int64_t>(4060, 4140)},
                                           {1, rc::gen::inRange<int64_t>(8100, 20000)}});
}

/// Numbers, and the scale that makes integers of up to 2^27 of them.
template <class T>
struct SquaresCase {
  SquaresCase()
      : count(any_length()),
        random(*rc::gen::arbitrary<uint32_t>()),
        x(count, *rc::gen::element(Numbers::kNormal, Numbers::kTiny, Numbers::kMiddle), random) {
    if (*rc::gen::arbitrary<bool>()) std::fill_n(x.data(), count, T(1));  // 2^27 all
    scale = scale_for(static_cast<double>(kernels::absolute_maximum_oracle<T>(count, x.data())));
    if (*rc::gen::weightedElement<bool>({{3, false}, {1, true}})) go_beyond_the_limit();
  }

  void go_beyond_the_limit() {
    scale *= *rc::gen::element(1.0, 2.0, 0x1p8, 0x1p40);
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T nan = std::numeric_limits<T>::quiet_NaN(), largest = std::numeric_limits<T>::max();
    const T values[] = {kInfinity, nan, -kInfinity, largest, -largest};
    const auto every = *rc::gen::inRange<int64_t>(1, 9);
    for (int64_t i = *rc::gen::inRange<int64_t>(0, 9), next = 0; i < count; i += every, ++next)
      x.data()[i] = values[next % 5];
  }

  static double scale_for(double maximum) {
    int exponent = 0;
    const double fraction = std::frexp(maximum, &exponent),
                 scale = std::ldexp(1.0, 27 - exponent + (fraction > 0.5 ? 0 : 1));
    return maximum > 0 && std::isfinite(scale) ? scale : 1.0;
  }

  int64_t count;
  std::mt19937 random;
  AnywhereInMemory<T> x;
  double scale;
};

template <class T, class Kernel>
void squares_equal_oracle(const Kernel& kernel) {
  const SquaresCase<T> c;
  const loops::WideSum sum = kernel(c.count, c.x.data(), c.scale);
  const auto expected = kernels::scaled_squares_oracle<T>(c.count, c.x.data(), c.scale);
  RC_ASSERT(sum.high == static_cast<int64_t>(expected >> 32));
  RC_ASSERT(sum.low == static_cast<int64_t>(expected & 0xffffffff));
}

template <class T>
void squares_equal_oracle_in(InstructionSet set) {
  squares_equal_oracle<T>(
      [=](int64_t count, const T* x, double scale) { return loops::scaled_squares<T>(count, x, scale, set); });
}

class ScaledSquares : public OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, ScaledSquares, every_set(), set_name);

TEST_P(ScaledSquares, AreTheOraclesInSinglePrecision) {
  expect_holds([] { squares_equal_oracle_in<float>(GetParam()); });
}
TEST_P(ScaledSquares, AreTheOraclesInDoublePrecision) {
  expect_holds([] { squares_equal_oracle_in<double>(GetParam()); });
}

RC_GTEST_PROP(AbsoluteMaximum, IsTheOracles, ()) {
  const SquaresCase<float> c;
  RC_ASSERT(same_number(loops::absolute_maximum<float>(c.count, c.x.data()),
                        kernels::absolute_maximum_oracle<float>(c.count, c.x.data())));
}

template <class T>
class FixedPointSums : public ::testing::Test {};
using FloatingTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FixedPointSums, FloatingTypes);

/// Ties go to the even one.
TYPED_TEST(FixedPointSums, RoundToTheNearestInteger) {
  const double unit = 0x1p-24;
  for (const auto& [value, expected] : {std::pair<double, int64_t>{0.75, 1},
                                        {-0.75, -1},
                                        {0.5, 0},
                                        {1.5, 2},
                                        {-1.5, -2},
                                        {2.25, 2},
                                        {-0.25, 0},
                                        {3, 3}}) {
    const std::vector<TypeParam> values(37, static_cast<TypeParam>(value * unit));
    const auto sum = loops::fixed_point_sum<TypeParam>(37, values.data());
    EXPECT_EQ(sum.sum, 37 * expected) << value;
    EXPECT_EQ(sum.refused, 0);
  }
}

TYPED_TEST(FixedPointSums, CountWhatDoesNotFit) {
  const TypeParam infinity = std::numeric_limits<TypeParam>::infinity();
  const std::vector<TypeParam> values{1,
                                      infinity,
                                      -infinity,
                                      std::numeric_limits<TypeParam>::quiet_NaN(),
                                      0x1p14,
                                      -0x1p14,
                                      TypeParam(0x1p14) - 1,
                                      -TypeParam(0x1p14) + 1};
  const auto sum = loops::fixed_point_sum<TypeParam>(8, values.data());
  EXPECT_EQ(sum.sum, int64_t{1} << 24);
  EXPECT_EQ(sum.refused, 5);
}

TEST(AbsoluteMaximum, IsNanWhereverOneIs) {
  std::vector<float> x(150, -3);
  EXPECT_EQ(loops::absolute_maximum<float>(150, x.data()), 3);
  for (float& each : x) {
    each = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(loops::absolute_maximum<float>(150, x.data()))) << &each - x.data();
    each = -3;
  }
}

// Faults.

loops::WideSum without_the_last(int64_t count, const float* x, double scale) {
  return loops::scaled_squares<float>(std::max<int64_t>(count - 1, 0), x, scale);
}
loops::WideSum truncated(int64_t count, const float* x, double scale) {
  std::vector<float> integers(x, x + count);
  for (float& each : integers) each = static_cast<float>(std::trunc(static_cast<double>(each) * scale));
  return loops::scaled_squares<float>(count, integers.data(), 1);
}
/// All squares in one word of 64 bits.
loops::WideSum overflowing(int64_t count, const float* x, double scale) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto integer = static_cast<int64_t>(std::rint(static_cast<double>(x[i]) * scale));
    sum += static_cast<uint64_t>(integer * integer);
  }
  return {static_cast<int64_t>(sum >> 32), static_cast<int64_t>(sum & 0xffffffff)};
}

TEST(ScaledSquaresMutants, AreNoticed) {
  expect_noticed("the last missing", [] { squares_equal_oracle<float>(without_the_last); });
  expect_noticed("truncated", [] { squares_equal_oracle<float>(truncated); });
  expect_noticed("one word", [] { squares_equal_oracle<float>(overflowing); });
}

}  // namespace
}  // namespace lockstep::testing
