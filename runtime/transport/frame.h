#pragma once
#include <array>
#include <optional>

#include "runtime/transport/transport.h"

namespace lockstep {

/// A message on a stream: this many bytes of header, little endian, then the payload.
///
///   offset  0  magic "LSM1"      4  round        8  collective   16  group
///          24  bytes of payload 32  checksum    40  kind         41  dtype      42  zero
inline constexpr size_t kFrameBytes = 48;
using Frame = std::array<std::byte, kFrameBytes>;

Frame to_frame(const MessageHeader& header);

/// Nothing if the bytes are no header: another magic, padding that is not zero, or a payload above 2^40 bytes.
std::optional<MessageHeader> from_frame(const Frame& frame);

}  // namespace lockstep
