#include "rng/distribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/elementary/half.h"
#include "core/error.h"
#include "rng/fill.h"
#include "rng/normal_quantile.h"
#include "rng/representable.h"

namespace lockstep::rng {
namespace {

using testing::HasSubstr;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr ScalarKind kFloating[] = {ScalarKind::kFloat32, ScalarKind::kFloat64, ScalarKind::kBFloat16,
                                    ScalarKind::kFloat16};

TEST(Distribution, BadParametersAreRefused) {
  EXPECT_THROW(uniform(1, 1), BadInput);
  EXPECT_THROW(uniform(2, 1), BadInput);
  EXPECT_THROW(uniform(0, kInfinity), BadInput);
  EXPECT_THROW(uniform(kNan, 1), BadInput);
  EXPECT_THROW(uniform(-1e308, 1e308), BadInput);
  EXPECT_THROW(normal(kNan, 1), BadInput);
  EXPECT_THROW(normal(0, -1), BadInput);
  EXPECT_THROW(normal(0, kInfinity), BadInput);
  EXPECT_THROW(truncated_normal(0, 0, -1, 1), BadInput);
  EXPECT_THROW(truncated_normal(0, 1, 1, 1), BadInput);
  EXPECT_THROW(truncated_normal(0, 1, 1, kNan), BadInput);
  EXPECT_THROW(bernoulli(1.1), BadInput);
  EXPECT_THROW(bernoulli(-0.1), BadInput);
  EXPECT_THROW(bernoulli(kNan), BadInput);
  EXPECT_THROW(bernoulli(0.5, kInfinity), BadInput);
  EXPECT_THROW(dropout_mask(0), BadInput);
  EXPECT_THROW(integers(3, 3), BadInput);
}

std::string fill_error(ScalarKind kind, const Distribution& distribution,
                       const Subarray& subarray = Subarray::whole({1})) {
  double out = 0;
  try {
    fill(&out, kind, distribution, Key{1}, 1, subarray);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "none";
}

TEST(Fill, RefusesWhatADtypeCannotHold) {
  EXPECT_THAT(fill_error(ScalarKind::kFloat32, integers(0, 2)), HasSubstr("integers are drawn as int64, not float32"));
  EXPECT_THAT(fill_error(ScalarKind::kInt64, uniform()), HasSubstr("int64 cannot hold"));
  EXPECT_THAT(fill_error(ScalarKind::kBool, normal()), HasSubstr("bool cannot hold"));
  EXPECT_THAT(fill_error(ScalarKind::kBFloat16, uniform(1.001, 1.002)), HasSubstr("holds no bfloat16 value"));
  EXPECT_THAT(fill_error(ScalarKind::kFloat32, uniform(-3e38, 3e38)), HasSubstr("too wide"));
  EXPECT_THAT(fill_error(ScalarKind::kFloat32, truncated_normal(0, 1, 9, 10)), HasSubstr("has probability"));
}

TEST(Fill, RefusesBoxesOutsideTheTensor) {
  EXPECT_EQ(fill_error(ScalarKind::kFloat32, uniform(), Subarray::of({4}, {{2}, {3}})),
            "subarray: dimension 0 has start 2 and length 3 in a size of 4");
  EXPECT_THAT(fill_error(ScalarKind::kFloat32, uniform(), Subarray::of({4}, {{-1}, {1}})), HasSubstr("start -1"));
  EXPECT_THAT(fill_error(ScalarKind::kFloat32, uniform(), Subarray::whole({1}, uint64_t{1} << 63)), HasSubstr("2^63"));
  EXPECT_THAT(fill_error(ScalarKind::kFloat32, uniform(), Subarray::of({1LL << 40, 1LL << 40}, {{0, 0}, {1, 1}})),
              HasSubstr("2^63"));
  EXPECT_THROW(Subarray::of({4}, {{0, 0}, {1}}), BadInput);
  EXPECT_THROW(Subarray::whole({1LL << 40, 1LL << 40}), BadInput);
}

double value_at(const std::vector<uint64_t>& data, ScalarKind kind, std::size_t i) {
  const void* start = data.data();
  switch (kind) {
    case ScalarKind::kFloat64:
      return static_cast<const double*>(start)[i];
    case ScalarKind::kFloat32:
      return static_cast<double>(static_cast<const float*>(start)[i]);
    case ScalarKind::kBFloat16:
      return static_cast<double>(elementary::from_bfloat16(static_cast<const uint16_t*>(start)[i]));
    default:
      return static_cast<double>(elementary::from_half(static_cast<const uint16_t*>(start)[i]));
  }
}

/// Draws n values as double.
std::vector<double> draw(ScalarKind kind, const Distribution& distribution, int64_t n, uint64_t stream = 5) {
  std::vector<uint64_t> raw(static_cast<std::size_t>(n));
  fill(raw.data(), kind, distribution, Key{42}, stream, Subarray::whole({n}));
  std::vector<double> values;
  for (std::size_t i = 0; i < raw.size(); ++i) values.push_back(value_at(raw, kind, i));
  return values;
}

TEST(Fill, UniformStaysInItsHalfOpenInterval) {
  for (const auto kind : kFloating) {
    for (const auto& [low, high] : {std::pair{0.0, 1.0}, {-0.3, 0.7}, {1.0, 1.02}, {-1e-3, 1e-3}}) {
      const auto values = draw(kind, uniform(low, high), 100000);
      EXPECT_GE(*std::min_element(values.begin(), values.end()), low) << name_of(kind);
      EXPECT_LT(*std::max_element(values.begin(), values.end()), high) << name_of(kind);
    }
  }
}

TEST(Fill, TruncatedNormalStaysInItsInterval) {
  for (const auto kind : kFloating) {
    for (const auto& [low, high] : {std::pair{-2.0, 2.0}, {-0.1, 0.3}, {2.5, kInfinity}, {-kInfinity, -1.0}}) {
      const auto values = draw(kind, truncated_normal(0, 1, low, high), 20000);
      EXPECT_GE(*std::min_element(values.begin(), values.end()), low) << name_of(kind);
      EXPECT_LE(*std::max_element(values.begin(), values.end()), high) << name_of(kind);
    }
  }
}

TEST(Fill, CertainAndImpossibleEvents) {
  for (const auto kind : kFloating) {
    EXPECT_THAT(draw(kind, bernoulli(1, 2), 1000), testing::Each(2.0));
    EXPECT_THAT(draw(kind, bernoulli(0, 2), 1000), testing::Each(0.0));
    EXPECT_THAT(draw(kind, normal(3, 0), 1000), testing::Each(3.0));
  }
}

TEST(Fill, TheMaskDoesNotDependOnTheDtype) {
  const auto single = draw(ScalarKind::kFloat32, bernoulli(0.3), 1000);
  for (const auto kind : kFloating) EXPECT_EQ(draw(kind, bernoulli(0.3), 1000), single) << name_of(kind);
}

TEST(Fill, HalfPrecisionIsTheRoundedSinglePrecision) {
  const auto single = draw(ScalarKind::kFloat32, normal(0, 0.02), 1000);
  const auto half = draw(ScalarKind::kFloat16, normal(0, 0.02), 1000);
  const auto brain = draw(ScalarKind::kBFloat16, normal(0, 0.02), 1000);
  for (std::size_t i = 0; i < single.size(); ++i) {
    EXPECT_EQ(half[i], static_cast<double>(elementary::from_half(elementary::to_half(static_cast<float>(single[i])))));
    EXPECT_EQ(brain[i],
              static_cast<double>(elementary::from_bfloat16(elementary::to_bfloat16(static_cast<float>(single[i])))));
  }
}

RC_GTEST_PROP(Representable, LimitsAreTight, (int32_t numerator)) {
  const double x = std::ldexp(static_cast<double>(numerator), *rc::gen::inRange(-60, -10));
  for (const auto kind : kFloating) {
    const double up = least_from(kind, x), down = greatest_up_to(kind, x), below = greatest_below(kind, x);
    RC_ASSERT(down <= x && x <= up && below < x);
    RC_ASSERT(!(least_from(kind, up) > up) && !(greatest_up_to(kind, down) < down));
    RC_ASSERT(greatest_below(kind, up) <= down);  // nothing lies between
    RC_ASSERT((down < up) == (x < up));
  }
}

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  for (double z = -11.5; z <= 0; z += 0.01) {
    const double p = normal_lower_tail(z);
    EXPECT_NEAR(p / (std::erfc(-z / std::sqrt(2.0)) / 2), 1.0, 2e-12) << z;
    EXPECT_NEAR(normal_quantile(p), z, 1e-11 * std::max(1.0, -z)) << z;
    if (p > 1e-3) {
      EXPECT_NEAR(normal_quantile(1 - p), -z, 1e-11 * std::max(1.0, -z)) << z;
    }
  }
}

}  // namespace
}  // namespace lockstep::rng
