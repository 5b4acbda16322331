#include "runtime/transport/streams/frame.h"

#include <bit>
#include <cstring>

namespace lockstep {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little endian");

constexpr uint32_t kMagic = 0x324d534c;  // "LSM2"
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

Frame to_frame(const MessageHeader& header, uint32_t lent) {
  Frame frame{};
  put(frame, 0, kMagic);
  put(frame, 4, header.purpose);
  put(frame, 8, header.collective);
  put(frame, 16, header.group);
  put(frame, 24, header.bytes);
  put(frame, 32, header.kind);
  put(frame, 33, header.dtype);
  put(frame, 36, lent);
  return frame;
}

std::optional<MessageHeader> from_frame(const Frame& frame) {
  MessageHeader header;
  header.purpose = read<uint32_t>(frame, 4);
  header.collective = read<uint64_t>(frame, 8);
  header.group = read<uint64_t>(frame, 16);
  header.bytes = read<uint64_t>(frame, 24);
  header.kind = read<uint8_t>(frame, 32);
  header.dtype = read<int8_t>(frame, 33);
  const bool known = read<uint32_t>(frame, 0) == kMagic && read<uint16_t>(frame, 34) == 0;
  if (!known || header.bytes > kMostBytes || lent_of(frame) > kMostLent) return std::nullopt;
  return header;
}

uint32_t lent_of(const Frame& frame) { return read<uint32_t>(frame, 36); }

}  // namespace lockstep
