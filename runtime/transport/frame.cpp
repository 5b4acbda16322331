#include "runtime/transport/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little endian");

constexpr uint32_t kMagic = 0x314d534c;  // "LSM1"
constexpr uint64_t kMostBytes = uint64_t{1} << 40;

template <class T>
void put(Frame& frame, size_t offset, T value) {
  std::memcpy(frame.data() + offset, &value, sizeof value);
}

template <class T>
T read(const Frame& frame, size_t offset) {
  T value;
  std::memcpy(&value, frame.data() + offset, sizeof value);
  return value;
}

}  // namespace

Frame to_frame(const MessageHeader& header) {
  Frame frame{};
  put(frame, 0, kMagic);
  put(frame, 4, header.round);
  put(frame, 8, header.collective);
  put(frame, 16, header.group);
  put(frame, 24, header.bytes);
  put(frame, 32, header.checksum);
  put(frame, 40, header.kind);
  put(frame, 41, header.dtype);
  return frame;
}

std::optional<MessageHeader> from_frame(const Frame& frame) {
  MessageHeader header;
  header.round = read<uint32_t>(frame, 4);
  header.collective = read<uint64_t>(frame, 8);
  header.group = read<uint64_t>(frame, 16);
  header.bytes = read<uint64_t>(frame, 24);
  header.checksum = read<uint64_t>(frame, 32);
  header.kind = read<uint8_t>(frame, 40);
  header.dtype = read<int8_t>(frame, 41);
  const bool padded = std::all_of(frame.begin() + 42, frame.end(), [](std::byte b) { return b == std::byte{0}; });
  if (read<uint32_t>(frame, 0) != kMagic || !padded || header.bytes > kMostBytes) return std::nullopt;
  return header;
}

}  // namespace lockstep
