#include "core/digest/tensor_digest.h"

#include <xxhash.h>

#include <vector>

#include "core/error.h"

namespace lockstep {

Digest joined_tensor_digest(std::span<const Digest> pieces) {
  LOCKSTEP_CHECK(!pieces.empty());
  if (pieces.size() == 1) return pieces.front();
  std::vector<XXH128_canonical_t> list(pieces.size());
  for (std::size_t p = 0; p < pieces.size(); ++p)
    XXH128_canonicalFromHash(&list[p], {.low64 = pieces[p].low, .high64 = pieces[p].high});
  return digest(std::as_bytes(std::span(list)));
}

Digest tensor_digest(std::span<const std::byte> bytes) {
  if (bytes.size() <= kTensorPieceBytes) return digest(bytes);
  std::vector<Digest> pieces(tensor_pieces(bytes.size()));
  for (auto& piece : pieces) {
    piece = digest(bytes.first(std::min(bytes.size(), kTensorPieceBytes)));
    bytes = bytes.subspan(std::min(bytes.size(), kTensorPieceBytes));
  }
  return joined_tensor_digest(pieces);
}

}  // namespace lockstep
