// The digest of tensors is that of its pieces, by xxHash.
#include "core/digest/tensor_digest.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <random>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::size_t size, uint64_t seed = 1) {
  std::mt19937_64 engine(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(engine() >> 56);
  return bytes;
}

/// The definition, with xxHash's own functions.
Digest expected(const Bytes& bytes) {
  const auto of = [](const void* start, std::size_t size) { return XXH3_128bits(start, size); };
  auto hash = of(bytes.data(), bytes.size());
  if (bytes.size() > 8192) {
    std::string list;
    for (std::size_t start = 0; start < bytes.size(); start += 8192) {
      XXH128_canonical_t canonical;
      XXH128_canonicalFromHash(&canonical, of(bytes.data() + start, std::min<std::size_t>(8192, bytes.size() - start)));
      list.append(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest));
    }
    hash = of(list.data(), list.size());
  }
  return {hash.high64, hash.low64};
}

TEST(TensorDigest, IsThatOfItsPieces) {
  for (const std::size_t size : {0, 1, 16, 17, 128, 129, 240, 241, 8191, 8192, 8193, 16384, 3 * 8192 + 5}) {
    const auto bytes = random_bytes(size);
    EXPECT_EQ(tensor_digest(bytes).text(), expected(bytes).text()) << size << " bytes";
  }
}

TEST(TensorDigest, KnownAnswers) {  // they pin recordings
  EXPECT_EQ(tensor_digest(Bytes(8192, std::byte{7})).text(), "ed4965fbf04e4a477fa9ce452f50a4b9");
  EXPECT_EQ(tensor_digest(Bytes(8193, std::byte{7})).text(), "9e56bcea32b1892c77d9dc0cf2efd5c7");
}

TEST(TensorDigest, CountsPieces) {
  EXPECT_EQ(tensor_pieces(0), 1U);
  EXPECT_EQ(tensor_pieces(8192), 1U);
  EXPECT_EQ(tensor_pieces(8193), 2U);
  EXPECT_EQ(tensor_pieces(3 * 8192), 3U);
}

}  // namespace
}  // namespace lockstep
