// The nearest numbers of eight and four bits: against a search over all of them, written here.
#include "core/elementary/low_precision.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace lockstep::elementary {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

/// All that is not negative, ascending; the code of each is its place.
std::vector<float> magnitudes(Grid grid) {
  std::vector<float> all;
  for (int code = 0;; ++code) {
    const int whole = 1 << grid.fraction_bits, exponent = code / whole, fraction = code % whole;
    const float x = exponent == 0 ? std::ldexp(static_cast<float>(fraction), grid.least_exponent - grid.fraction_bits)
                                  : std::ldexp(static_cast<float>(whole + fraction),
                                               grid.least_exponent + exponent - 1 - grid.fraction_bits);
    if (x > grid.largest) return all;
    all.push_back(x);
  }
}

/// Reads the definition: the smaller distance, of two the even place.
float searched(const std::vector<float>& all, float x) {
  const double size = std::abs(static_cast<double>(x));
  size_t best = all.size() - 1;
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const double below = all[i], above = all[i + 1];
    if (size >= above) continue;
    const double down = size - below, up = above - size;
    const bool upper = up < down || (!(down < up) && i % 2 == 1);
    best = upper ? i + 1 : i;
    break;
  }
  return std::copysign(all[best], x);
}

/// All bfloat16 numbers, every tie and what lies beside it, and any bits.
std::vector<float> arguments(const std::vector<float>& all) {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) values.push_back(portable::bits<float>(bits << 16));
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    const float tie = all[i] / 2 + all[i + 1] / 2;
    for (const float x : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinite)})
      values.insert(values.end(), {x, -x});
  }
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) values.push_back(portable::bits<float>(static_cast<uint32_t>(random())));
  return values;
}

class LowPrecision : public ::testing::TestWithParam<Grid> {};

TEST_P(LowPrecision, TakesTheNearestNumber) {
  const auto all = magnitudes(GetParam());
  EXPECT_EQ(all.back(), GetParam().largest);
  for (const float x : arguments(all)) {
    const float y = nearest(GetParam(), x);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(y));
      continue;
    }
    const float expected = std::isinf(x) ? std::copysign(all.back(), x) : searched(all, x);
    ASSERT_EQ(portable::bits<uint32_t>(y), portable::bits<uint32_t>(expected)) << x << " -> " << y;
    EXPECT_EQ(nearest(GetParam(), y), y);
  }
}

std::string grid_name(const ::testing::TestParamInfo<Grid>& info) {
  return fmt::format("fraction{}_exponent{}", info.param.fraction_bits, info.param.least_exponent + 64);
}
INSTANTIATE_TEST_SUITE_P(Grids, LowPrecision, ::testing::Values(kE4m3, kE5m2, kE2m1), grid_name);

TEST(LowPrecisionIntegers, AreRoundedToEvenAndSymmetric) {
  for (float x = -130; x <= 130; x += 0.25f)
    EXPECT_EQ(nearest(kInt8, x), std::min(127.0f, std::max(-127.0f, std::nearbyint(x)))) << x;
  EXPECT_TRUE(std::signbit(nearest(kInt8, -0.0f)));
}

TEST(Float8Codes, AreThePlacesOfTheirNumbers) {
  for (const Grid& grid : {kE4m3, kE5m2}) {
    const auto all = magnitudes(grid);
    for (size_t code = 0; code < all.size(); ++code) {
      EXPECT_EQ(float8_code(grid, all[code]), code);
      EXPECT_EQ(float8_code(grid, -all[code]), code + 128);
      EXPECT_EQ(float8_number(grid, static_cast<uint8_t>(code)), all[code]);
      EXPECT_EQ(portable::bits<uint32_t>(float8_number(grid, static_cast<uint8_t>(code + 128))),
                portable::bits<uint32_t>(-all[code]));
    }
    EXPECT_EQ(float8_code(grid, kNan) & 0x7f, 0x7f);
    EXPECT_TRUE(std::isnan(float8_number(grid, 0x7f)));
  }
  EXPECT_EQ(float8_number(kE5m2, 0xfc), -kInfinite);
  EXPECT_TRUE(std::isnan(float8_number(kE5m2, 0x7d)));
}

TEST(LowPrecisionScales, BringTheMaximumToTheLargestNumber) {
  EXPECT_EQ(scale_for(kE4m3, 448, false), 1);
  EXPECT_EQ(scale_for(kE4m3, 3, false), static_cast<float>(448.0 / 3.0));
  EXPECT_EQ(scale_for(kE4m3, 3, true), 128);
  EXPECT_EQ(scale_for(kE4m3, 3.5, true), 128);  // a power of two stays
  EXPECT_EQ(scale_for(kE4m3, 0, false), static_cast<float>(448e12));
  EXPECT_EQ(scale_for(kE5m2, kInfinite, true), 0);
  EXPECT_TRUE(std::isnan(scale_for(kE5m2, kNan, true)));
}

TEST(LowPrecisionBlocks, ShareTheExponentOfTheLargest) {
  EXPECT_EQ(shared_exponent(kE4m3, 448), 0);
  EXPECT_EQ(shared_exponent(kE4m3, 255), -1);
  EXPECT_EQ(shared_exponent(kE2m1, 8), 1);
  EXPECT_EQ(shared_exponent(kE2m1, std::nextafter(8.0f, 0.0f)), 0);
  for (const float tiny : {0.0f, 0x1p-149f, 0x1p-127f, 0x1p-120f}) EXPECT_EQ(shared_exponent(kE4m3, tiny), -127);
  EXPECT_EQ(shared_exponent(kE4m3, std::numeric_limits<float>::max()), 119);
  EXPECT_EQ(nearest_in_block(kE4m3, 119, std::numeric_limits<float>::max()), 448 * 0x1p119f);  // saturates
  EXPECT_EQ(nearest_in_block(kE4m3, -127, 0x1p-136f), 0x1p-136f);
  EXPECT_EQ(nearest_in_block(kE4m3, -127, 0x1p-137f), 0);  // a tie, to even
  EXPECT_EQ(nearest_in_block(kE2m1, -127, -0x1.8p-127f), -0x1.8p-127f);
}

}  // namespace
}  // namespace lockstep::elementary
