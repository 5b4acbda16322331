#include "core/elementary/elementary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "core/elementary/portable.h"

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Spacing of floats (24 bits) or doubles (53) around an exact result, the least subnormal at the bottom.
long double ulp(long double exact, int bits, int least_exponent) {
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::ldexp(1.0L, std::max(exponent - bits, least_exponent));
}
long double ulp_of(float, long double exact) { return ulp(exact, 24, -149); }
long double ulp_of(double, long double exact) { return ulp(exact, 53, -1074); }

/// The largest error seen, with its argument.
template <class T>
struct Worst {
  long double ulps = 0;
  T argument = 0;

  void add(T x, T value, long double exact) {
    const auto expected = static_cast<T>(exact);
    if (std::isnan(expected) || std::isinf(expected) || std::isinf(value)) {
      const bool same = std::isnan(expected) ? std::isnan(value) : !(value < expected || value > expected);
      if (!same || (std::isnan(value) && !std::isnan(expected))) ulps = 1e9L, argument = x;
      return;
    }
    const long double error = std::abs(static_cast<long double>(value) - exact) / ulp_of(x, exact);
    if (!(error <= ulps)) ulps = error, argument = x;
  }
};

template <class T>
void expect_below(const Worst<T>& worst, double bound) {
  EXPECT_LT(worst.ulps, bound) << "at " << std::hexfloat << worst.argument;
}

/// Every 257th float (a prime: all exponents, both signs); with LOCKSTEP_SOAK set every one, about 5 minutes.
template <class Function, class Exact>
Worst<float> over_floats(Function function, Exact exact) {
  static const uint64_t step = std::getenv("LOCKSTEP_SOAK") != nullptr ? 1 : 257;
  Worst<float> worst;
  for (uint64_t word = 0; word < uint64_t{1} << 32; word += step) {
    const auto x = portable::bits<float>(static_cast<uint32_t>(word));
    worst.add(x, function(x), static_cast<long double>(exact(static_cast<double>(x))));
  }
  return worst;
}

/// Half over all bit patterns, half uniform in [-range, range].
template <class Function, class Exact>
Worst<double> over_doubles(Function function, Exact exact, double range) {
  std::mt19937_64 random(20240);
  Worst<double> worst;
  for (int i = 0; i < 400000; ++i) {
    const double uniform = range * (static_cast<double>(random() >> 10) * 0x1p-53 - 1.0);
    const double x = i % 2 == 0 ? portable::bits<double>(random()) : uniform;
    worst.add(x, function(x), exact(static_cast<long double>(x)));
  }
  return worst;
}

TEST(Elementary, SingleExpIsWithinItsBound) {
  expect_below(over_floats([](float x) { return elementary::exp(x); }, [](double x) { return std::exp(x); }), 1.0);
}
TEST(Elementary, NormalExpIsExpWhereResultsAreNormal) {
  const auto error = over_floats([](float x) { return elementary::normal_exp(x); },
                                 [](double x) {
                                   const auto exact = elementary::exp(static_cast<float>(x));
                                   return x < -86 ? 0.0 : x > 88 ? HUGE_VAL : static_cast<double>(exact);
                                 });
  expect_below(error, 1e-30);
  const auto twice = over_doubles([](double x) { return elementary::normal_exp(x); },
                                  [](long double x) {
                                    const auto exact = elementary::exp(static_cast<double>(x));
                                    return static_cast<long double>(x < -707 ? 0.0 : x > 709 ? HUGE_VAL : exact);
                                  },
                                  745);
  expect_below(twice, 1e-30);
}

/// |value - exact|, and that in parts of it; NaN where they differ in being a number.
struct Difference {
  double absolute = 0, relative = 0;
  void add(double value, double exact) {
    absolute = std::max(absolute, std::abs(value - exact));
    relative = std::max(relative, std::abs(value - exact) / exact);
  }
};

TEST(Elementary, NormalTailsAreWithinTheirBounds) {
  Difference near, far;
  for (uint32_t word = 0; word < portable::bits<uint32_t>(40.0f); word += 257) {
    const auto y = portable::bits<float>(word);
    const auto tail = elementary::normal_tail(y);
    const double x = static_cast<double>(y), bell = std::exp(-x * x / 2), beyond = std::erfc(x / std::sqrt(2.0)) / 2;
    auto& difference = y <= 6 ? near : far;
    difference.add(static_cast<double>(tail.bell), bell);
    difference.add(static_cast<double>(tail.beyond), beyond);
  }
  EXPECT_LT(near.absolute, 1.2e-7);
  EXPECT_LT(near.relative, 4e-6);
  EXPECT_LT(far.absolute, 2e-14);
}

TEST(Elementary, NormalTailsInDoublePrecisionAreWithinTheirBound) {
  Difference difference;
  for (double y = 0; y < 45; y += 1e-3) {
    const auto tail = elementary::normal_tail(y);
    difference.add(tail.bell, std::exp(-y * y / 2));
    difference.add(tail.beyond, std::erfc(y / std::sqrt(2.0)) / 2);
  }
  EXPECT_LT(difference.absolute, 2e-16);
}

TEST(Elementary, NormalTailsEndInNothing) {
  EXPECT_EQ(elementary::normal_tail(kInfinity).beyond, 0.0f);
  EXPECT_EQ(elementary::normal_tail(kInfinity).bell, 0.0f);
  EXPECT_EQ(elementary::normal_tail(0.0f).beyond, 0.5f);
  EXPECT_EQ(elementary::normal_tail(0.0f).bell, 1.0f);
  EXPECT_TRUE(std::isnan(elementary::normal_tail(kNan).beyond));
  EXPECT_TRUE(std::isnan(elementary::normal_tail(static_cast<double>(kNan)).beyond));
}

TEST(Elementary, ErfIsWithinItsBound) {
  expect_below(over_floats([](float x) { return elementary::erf(x); }, [](double x) { return std::erf(x); }), 1.3);
  expect_below(
      over_doubles([](double x) { return elementary::erf(x); }, [](long double x) { return std::erf(x); }, 7.0), 1.3);
}
TEST(Elementary, SingleExp2IsWithinItsBound) {
  expect_below(over_floats([](float x) { return elementary::exp2(x); }, [](double x) { return std::exp2(x); }), 0.9);
}
TEST(Elementary, SingleLogIsWithinItsBound) {
  expect_below(over_floats([](float x) { return elementary::log(x); }, [](double x) { return std::log(x); }), 0.8);
}
TEST(Elementary, SingleTanhIsWithinItsBound) {
  expect_below(over_floats([](float x) { return elementary::tanh(x); }, [](double x) { return std::tanh(x); }), 1.5);
}
TEST(Elementary, SingleSinAndCosAreWithinTheirBound) {
  expect_below(over_floats([](float x) { return elementary::sin(x); }, [](double x) { return std::sin(x); }), 0.501);
  expect_below(over_floats([](float x) { return elementary::cos(x); }, [](double x) { return std::cos(x); }), 0.501);
}

TEST(Elementary, DoublesAreWithinTheirBounds) {
  using Long = long double;
  expect_below(over_doubles([](double x) { return elementary::exp(x); }, [](Long x) { return std::exp(x); }, 745), 1.0);
  expect_below(over_doubles([](double x) { return elementary::exp2(x); }, [](Long x) { return std::exp2(x); }, 2), 0.9);
  expect_below(over_doubles([](double x) { return elementary::log(x); }, [](Long x) { return std::log(x); }, 3), 0.9);
  expect_below(over_doubles([](double x) { return elementary::tanh(x); }, [](Long x) { return std::tanh(x); }, 2), 1.5);
  expect_below(over_doubles([](double x) { return elementary::sin(x); }, [](Long x) { return std::sin(x); }, 1e6), 0.9);
  expect_below(over_doubles([](double x) { return elementary::cos(x); }, [](Long x) { return std::cos(x); }, 1e6), 0.9);
}

TEST(Elementary, TurnsAreWithinTheirBound) {
  constexpr long double kTurn = 6.283185307179586476925286766559L;
  std::mt19937_64 random(3);
  Worst<float> single;
  Worst<double> twice;
  for (int i = 0; i < 200000; ++i) {  // below 1/8 of a turn, where the reference needs no reduction of its own
    const auto w = static_cast<int32_t>(random()) >> 2;
    const auto v = static_cast<int64_t>(random()) >> 2;
    const long double angle = static_cast<long double>(w) * 0x1p-32L * kTurn;
    const long double fine_angle = static_cast<long double>(v) * 0x1p-64L * kTurn;
    single.add(0.0f, elementary::sin_cos_of_turns(static_cast<uint32_t>(w)).sin, std::sin(angle));
    single.add(0.0f, elementary::sin_cos_of_turns(static_cast<uint32_t>(w)).cos, std::cos(angle));
    twice.add(0.0, elementary::sin_cos_of_turns(static_cast<uint64_t>(v)).sin, std::sin(fine_angle));
    twice.add(0.0, elementary::sin_cos_of_turns(static_cast<uint64_t>(v)).cos, std::cos(fine_angle));
  }
  expect_below(single, 2.5);
  expect_below(twice, 2.5);
}

TEST(Elementary, QuartersOfATurnAreExact) {
  const float expected[4][2] = {{0, 1}, {1, 0}, {0, -1}, {-1, 0}};
  for (uint32_t quarter = 0; quarter < 4; ++quarter) {
    const auto single = elementary::sin_cos_of_turns(quarter << 30);
    const auto twice = elementary::sin_cos_of_turns(uint64_t{quarter} << 62);
    EXPECT_FLOAT_EQ(single.sin, expected[quarter][0]);
    EXPECT_FLOAT_EQ(single.cos, expected[quarter][1]);
    EXPECT_DOUBLE_EQ(twice.sin, static_cast<double>(expected[quarter][0]));
    EXPECT_DOUBLE_EQ(twice.cos, static_cast<double>(expected[quarter][1]));
  }
}

template <class T>
uint64_t word_of(T x) {
  if constexpr (sizeof(T) == 4)
    return portable::bits<uint32_t>(x);
  else
    return portable::bits<uint64_t>(x);
}

template <class T>
class ElementarySpecialValues : public testing::Test {};
using Floats = testing::Types<float, double>;
TYPED_TEST_SUITE(ElementarySpecialValues, Floats);

TYPED_TEST(ElementarySpecialValues, FollowAnnexF) {
  using T = TypeParam;
  const T infinity = kInfinity, nan = kNan, zero = 0;
  EXPECT_EQ(word_of(elementary::exp(-infinity)), word_of(zero));
  EXPECT_EQ(word_of(elementary::exp(infinity)), word_of(infinity));
  EXPECT_EQ(word_of(elementary::exp(-zero)), word_of(T{1}));
  EXPECT_EQ(word_of(elementary::normal_exp(-infinity)), word_of(zero));
  EXPECT_EQ(word_of(elementary::normal_exp(infinity)), word_of(infinity));
  EXPECT_TRUE(std::isnan(elementary::normal_exp(nan)));
  EXPECT_EQ(word_of(elementary::exp2(-infinity)), word_of(zero));
  EXPECT_EQ(word_of(elementary::exp2(infinity)), word_of(infinity));
  EXPECT_EQ(word_of(elementary::exp2(T{-10})), word_of(T{0x1p-10}));
  EXPECT_EQ(word_of(elementary::log(zero)), word_of(-infinity));
  EXPECT_EQ(word_of(elementary::log(-zero)), word_of(-infinity));
  EXPECT_EQ(word_of(elementary::log(infinity)), word_of(infinity));
  EXPECT_EQ(word_of(elementary::log(T{1})), word_of(zero));
  EXPECT_TRUE(std::isnan(elementary::log(T{-1})));
  EXPECT_TRUE(std::isnan(elementary::log(-infinity)));
  EXPECT_EQ(word_of(elementary::tanh(-zero)), word_of(-zero));
  EXPECT_EQ(word_of(elementary::tanh(infinity)), word_of(T{1}));
  EXPECT_EQ(word_of(elementary::tanh(-infinity)), word_of(T{-1}));
  EXPECT_EQ(word_of(elementary::sin(zero)), word_of(zero));
  EXPECT_EQ(word_of(elementary::sin(-zero)), word_of(-zero));
  EXPECT_EQ(word_of(elementary::cos(zero)), word_of(T{1}));
  EXPECT_TRUE(std::isnan(elementary::sin(infinity)));
  EXPECT_TRUE(std::isnan(elementary::cos(-infinity)));
  for (const T value : {elementary::exp(nan), elementary::exp2(nan), elementary::log(nan), elementary::tanh(nan),
                        elementary::sin(nan), elementary::cos(nan)}) {
    EXPECT_TRUE(std::isnan(value));
  }
}

TEST(Elementary, HugeArgumentsAreReducedExactly) {
  // The double nearest to a multiple of pi/2 (Muller, "Elementary Functions", table 11.1).
  EXPECT_DOUBLE_EQ(elementary::cos(6381956970095103.0 * 0x1p797), -4.68716592425462761112e-19);
  EXPECT_DOUBLE_EQ(elementary::sin(0x1.fffffffffffffp1023), 0.0049619547891840646);
}

}  // namespace
}  // namespace lockstep
