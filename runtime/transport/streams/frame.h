#pragma once
#include <array>
#include <optional>

#include "runtime/transport/transport.h"

namespace lockstep {

/// A message on a stream: this many bytes of header, little endian, then the payload, then, where the stream is
/// checked, 8 bytes of checksum of the payload. It stands behind, so that both sides compute it on the way.
///
///   offset  0  magic "LSM2"      4  purpose      8  collective   16  group
///          24  bytes of payload 32  kind        33  dtype        34  zero          36  lent
///
/// lent = n > 0: instead of the payload, n pairs of address and size follow, 8 bytes each; the receiver reads the bytes
/// there (stream.h).
inline constexpr size_t kFrameBytes = 40;
using Frame = std::array<std::byte, kFrameBytes>;
using Trailer = std::array<std::byte, sizeof(uint64_t)>;

inline constexpr uint32_t kMostLent = 1024;

Frame to_frame(const MessageHeader& header, uint32_t lent = 0);

/// Nothing if the bytes are no header: another magic, padding that is not zero, a payload above 2^40 bytes, or more
/// than kMostLent.
std::optional<MessageHeader> from_frame(const Frame& frame);
uint32_t lent_of(const Frame& frame);

}  // namespace lockstep
