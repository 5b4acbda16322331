// Loops over numbers of few bits and the Hadamard transform give the bits of their plain readings, on every instruction
// set.
#include "runtime/kernels/rows/low_precision_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "runtime/kernels/rows/hadamard_loops.h"
#include "tests/support/instruction_sets.h"

namespace lockstep::testing {
namespace {

using elementary::NumberFormat;
namespace loops = kernels::loops;

constexpr NumberFormat kFormats[] = {NumberFormat::kE4m3, NumberFormat::kE5m2, NumberFormat::kE2m1,
                                     NumberFormat::kInt8};

template <class T = float>
std::vector<T> numbers(size_t count, int seed = 3) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<T> all(count);
  for (auto& x : all)
    x = std::ldexp(static_cast<T>(random()) / T(4294967296) - T(0.5), static_cast<int>(random() % 24) - 12);
  return all;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

class LowPrecisionLoops : public OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, LowPrecisionLoops, every_set(), set_name);

TEST_P(LowPrecisionLoops, RoundAsTheirScalars) {
  const auto x = numbers(1003);
  for (const auto format : kFormats) {
    auto out = x, expected = x;
    loops::nearest(format, 1003, x.data(), out.data(), GetParam());
    for (auto& value : expected) value = elementary::nearest(grid_of(format), value);
    EXPECT_TRUE(same(out, expected)) << static_cast<int>(format);
  }
}

TEST_P(LowPrecisionLoops, GiveCodesAndTakeThemBack) {
  for (const auto format : {NumberFormat::kE4m3, NumberFormat::kE5m2}) {
    auto x = numbers(517);
    loops::nearest(format, 517, x.data(), x.data());
    std::vector<uint8_t> codes(517);
    auto back = x;
    loops::float8_codes(format, 517, x.data(), codes.data(), GetParam());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(codes[i], elementary::float8_code(grid_of(format), x[i]));
    loops::float8_numbers(format, 517, codes.data(), back.data(), GetParam());
    EXPECT_TRUE(same(back, x));
  }
}

/// Reads the definition, element by element.
std::vector<float> blocks(NumberFormat format, const loops::BlockShape& s, const std::vector<float>& x) {
  auto out = x;
  const auto at = [&](int64_t o, int64_t i, int64_t c) {
    return static_cast<size_t>((o * s.length + i) * s.inner + c);
  };
  for (int64_t o = 0; o < s.outer; ++o)
    for (int64_t c = 0; c < s.inner; ++c)
      for (int64_t i = 0; i < s.length; ++i) {
        float maximum = 0;
        bool finite = true;
        for (int64_t k = i / 32 * 32; k < std::min(i / 32 * 32 + 32, s.length); ++k) {
          maximum = std::max(maximum, std::abs(x[at(o, k, c)]));
          finite = finite && std::isfinite(x[at(o, k, c)]);
        }
        const int exponent = elementary::shared_exponent(grid_of(format), finite ? maximum : 0);
        out[at(o, i, c)] = finite ? elementary::nearest_in_block(grid_of(format), exponent, x[at(o, i, c)])
                                  : std::numeric_limits<float>::quiet_NaN();
      }
  return out;
}

TEST_P(LowPrecisionLoops, ShareTheScalesOfBlocks) {
  for (const auto& shape : {loops::BlockShape{3, 64, 1}, {2, 45, 1}, {2, 45, 70}, {1, 1, 129}, {0, 5, 3}, {2, 0, 3}}) {
    auto x = numbers(static_cast<size_t>(shape.outer * shape.length * shape.inner));
    if (x.size() > 40) x[40] = std::numeric_limits<float>::infinity(), x[7] = -0.0f;
    for (const auto format : {NumberFormat::kE4m3, NumberFormat::kE2m1}) {
      auto out = x;
      loops::nearest_in_blocks(format, shape, x.data(), out.data(), GetParam());
      const auto expected = blocks(format, shape, x);
      for (size_t i = 0; i < x.size(); ++i)
        ASSERT_TRUE(std::isnan(expected[i]) ? std::isnan(out[i]) : same<float>({out[i]}, {expected[i]})) << i;
    }
  }
}

/// Stage after stage, pair after pair.
template <class T>
void by_stages(int64_t width, T scale, T* x) {
  for (int64_t h = 1; h < width; h *= 2)
    for (int64_t i = 0; i < width; ++i) {
      if ((i & h) != 0) continue;
      const T a = x[i], b = x[i + h];
      x[i] = a + b, x[i + h] = a - b;
    }
  for (int64_t i = 0; i < width; ++i) x[i] *= scale;
}

template <class T>
void hadamard_is_its_stages(InstructionSet set) {
  for (int64_t width = 2; width <= 32768; width *= 2) {
    auto x = numbers<T>(static_cast<size_t>(3 * width)), expected = x;
    loops::hadamard<T>(3, width, T(0.3), x.data(), set);
    for (int64_t row = 0; row < 3; ++row) by_stages(width, T(0.3), expected.data() + row * width);
    EXPECT_TRUE(same(x, expected)) << width;
  }
}

TEST_P(LowPrecisionLoops, TransformInTheOrderOfStages) {
  hadamard_is_its_stages<float>(GetParam());
  hadamard_is_its_stages<double>(GetParam());
}

TEST(HadamardLoops, AnotherOrderOfStagesHasOtherBits) {
  auto x = numbers(64), expected = x;
  for (int64_t h = 32; h >= 1; h /= 2)
    for (int64_t i = 0; i < 64; ++i)
      if ((i & h) == 0) {
        const float a = x[static_cast<size_t>(i)], b = x[static_cast<size_t>(i + h)];
        x[static_cast<size_t>(i)] = a + b, x[static_cast<size_t>(i + h)] = a - b;
      }
  by_stages(64, 1.0f, expected.data());
  EXPECT_FALSE(same(x, expected));
}

}  // namespace
}  // namespace lockstep::testing
