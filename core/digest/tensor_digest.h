#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

#include "core/digest/digest.h"

namespace lockstep {

/// A tensor is fingerprinted in pieces of so many bytes, which a GPU takes side by side.
inline constexpr std::size_t kTensorPieceBytes = 8192;

/// How many pieces so many bytes have; no bytes are one piece without any.
constexpr std::size_t tensor_pieces(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kTensorPieceBytes - 1) / kTensorPieceBytes);
}

/// The fingerprint of a tensor's bytes in row-major order: digest() of one piece, or digest() of the list of the
/// pieces' digests, 16 bytes each: `high`, then `low`, most significant byte first. The last piece may be shorter.
Digest tensor_digest(std::span<const std::byte> bytes);

/// The same, from the digests of the pieces in their order. REQUIRES: one at least.
Digest joined_tensor_digest(std::span<const Digest> pieces);

}  // namespace lockstep
