// XXH3 as GPUs compute it, compiled for the CPU, is xxHash's, for every class of lengths.
#include "core/digest/xxh3_piece.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <vector>

namespace lockstep {
namespace {

/// At any alignment.
TEST(Xxh3Piece, IsXxhash) {
  std::vector<uint32_t> sizes;
  for (uint32_t size = 0; size <= 1100; ++size) sizes.push_back(size);
  for (const uint32_t size : {2047, 2048, 2049, 4096, 8191, 8192}) sizes.push_back(size);
  std::mt19937_64 engine(1);
  std::vector<xxh3::Byte> bytes(8192 + 8);
  for (auto& byte : bytes) byte = static_cast<xxh3::Byte>(engine() >> 56);
  for (const auto size : sizes) {
    const auto* start = bytes.data() + size % 8;
    const auto hash = XXH3_128bits(start, size);
    ASSERT_EQ(xxh3::of_piece(start, size).text(), (Digest{hash.high64, hash.low64}).text()) << size << " bytes";
  }
}

TEST(Xxh3Piece, OfBytesThatAreAlike) {
  for (const int value : {0, 255})
    for (uint32_t size = 0; size <= 1100; ++size) {
      const std::vector<xxh3::Byte> bytes(size, static_cast<xxh3::Byte>(value));
      const auto hash = XXH3_128bits(bytes.data(), size);
      ASSERT_EQ(xxh3::of_piece(bytes.data(), size), (Digest{hash.high64, hash.low64})) << size << " bytes of " << value;
    }
}

}  // namespace
}  // namespace lockstep
