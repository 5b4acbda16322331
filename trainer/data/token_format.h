#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "trainer/data/token_sidecar.h"

namespace lockstep::trainer {

/// Where the ids of a file of tokens are, and how wide. Little-endian, unsigned.
///
/// - With a sidecar: the file is nothing but ids of its dtype.
/// - llm.c's (karpathy/llm.c, dev/data/data_common.py): 256 int32, of which the first three are magic, version and
///   count; 20240520 and version 1: ids of 16 bits, 20240801 and version 7: of 32.
/// - Else nanoGPT's (karpathy/nanoGPT, data/*/prepare.py): nothing but ids of 16 bits.
struct TokenFormat {
  const char* name = "nanoGPT";
  int64_t width = 2;   ///< bytes of an id
  int64_t header = 0;  ///< bytes before the first
  int64_t tokens = 0;
};

/// Of the bytes of `path`. BadInput for a header that is of another version or does not fit the file, a length that is
/// no multiple of the width, a sidecar that tells another count, and where nothing says what they are for ids of 32
/// bits and for what is text or made of it: it would be ids of some vocabulary.
TokenFormat token_format(const std::string& path, std::span<const std::byte> bytes,
                         const std::optional<TokenSidecar>& sidecar);

}  // namespace lockstep::trainer
