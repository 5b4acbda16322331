#include "core/elementary/half.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::rng {
namespace {

TEST(Half, AgreesWithLibTorchOnFloatsOfEveryExponent) {
  for (uint64_t word = 0; word < uint64_t{1} << 32; word += 1021) {
    const auto x = portable::bits<float>(static_cast<uint32_t>(word));
    if (std::isnan(x)) continue;
    ASSERT_EQ(elementary::to_half(x), c10::Half(x).x) << std::hexfloat << x;
    ASSERT_EQ(elementary::to_bfloat16(x), c10::BFloat16(x).x) << std::hexfloat << x;
  }
}

TEST(Half, RoundsTiesToEvenAroundEveryHalf) {
  for (uint32_t word = 0; word < 0x7c00; ++word) {
    const float low = elementary::from_half(static_cast<uint16_t>(word));
    const float high = word == 0x7bff ? 65536.0f : elementary::from_half(static_cast<uint16_t>(word + 1));
    const float middle = low + (high - low) / 2;
    for (const float x : {std::nextafter(middle, low), middle, std::nextafter(middle, high)}) {
      ASSERT_EQ(elementary::to_half(x), c10::Half(x).x) << std::hexfloat << x;
      ASSERT_EQ(elementary::to_half(-x), c10::Half(-x).x) << std::hexfloat << -x;
    }
  }
}

TEST(Half, EveryPatternSurvivesTheRoundTrip) {
  for (uint32_t word = 0; word < 0x10000; ++word) {
    const auto bits = static_cast<uint16_t>(word);
    if ((bits & 0x7fff) <= 0x7c00) {
      ASSERT_EQ(elementary::to_half(elementary::from_half(bits)), bits);
    }
    if ((bits & 0x7fff) <= 0x7f80) {
      ASSERT_EQ(elementary::to_bfloat16(elementary::from_bfloat16(bits)), bits);
    }
  }
}

}  // namespace
}  // namespace lockstep::rng
