#include "core/digest/place_digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace lockstep {
namespace {

std::vector<uint32_t> words(size_t count) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0x3F800000U);
  return values;
}

void add(PlaceDigest& digest, const std::vector<uint32_t>& values, size_t from, size_t to, const char* tensor = "w") {
  digest.add(PlaceDigest::key(tensor), from, std::as_bytes(std::span(values)).subspan(from * 4, (to - from) * 4));
}

Digest whole(const std::vector<uint32_t>& values, const char* tensor = "w") {
  PlaceDigest digest;
  add(digest, values, 0, values.size(), tensor);
  return digest.result();
}

TEST(PlaceDigest, IsTheSameHoweverItIsCutAndWhoeverAdds) {
  const auto values = words(100);
  PlaceDigest mine, other;
  add(mine, values, 70, 100);
  add(other, values, 20, 70);
  add(mine, values, 0, 20);
  add(other, values, 50, 50);
  mine.add(other.result());
  EXPECT_EQ(mine.result(), whole(values));
}

TEST(PlaceDigest, IsAnotherForEveryBitPlaceAndTensor) {
  const auto values = words(64);
  std::set<Digest> digests{whole(values), whole(values, "v"), Digest{}};
  for (size_t i = 0; i < values.size(); ++i) {
    for (int bit = 0; bit < 32; ++bit) {
      auto flipped = values;
      flipped[i] ^= 1U << bit;
      digests.insert(whole(flipped));
    }
    auto swapped = values;
    std::swap(swapped[i], swapped[(i + 1) % values.size()]);
    digests.insert(whole(swapped));
  }
  EXPECT_EQ(digests.size(), 3U + 64 * 33);
}

TEST(PlaceDigest, ElementsMissingOrThereTwiceShow) {
  const std::vector<uint32_t> zeros(8);
  PlaceDigest twice;
  add(twice, zeros, 0, 8);
  add(twice, zeros, 3, 4);
  PlaceDigest missing;
  add(missing, zeros, 1, 8);
  EXPECT_NE(twice.result(), whole(zeros));
  EXPECT_NE(missing.result(), whole(zeros));
}

/// They are in checkpoints.
TEST(PlaceDigest, StaysWhatItIs) {
  EXPECT_EQ(whole(words(5)).text(), "6a059d0c7a16eddc0d62438627e7f7b2");
  EXPECT_EQ(whole({}).text(), "00000000000000000000000000000000");
}

}  // namespace
}  // namespace lockstep
