#include "runtime/transport/transport.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>

#include "core/collective_kind.h"

namespace lockstep {
namespace {

std::string dtype_text(int8_t dtype) { return c10::toString(static_cast<c10::ScalarType>(dtype)); }

}  // namespace

std::string MessageHeader::text() const {
  return fmt::format("collective {} {} {} group {:x} {} bytes for {:x}", collective, kind_text(kind), dtype_text(dtype),
                     group, bytes, purpose);
}

uint64_t group_digest(std::span<const int> ranks) { return XXH3_64bits(ranks.data(), ranks.size_bytes()); }

uint32_t purpose_digest(std::string_view op, std::span<const uint64_t> subject) {
  const auto seed = XXH3_64bits(op.data(), op.size());
  const auto digest = static_cast<uint32_t>(XXH3_64bits_withSeed(subject.data(), subject.size_bytes(), seed));
  return std::max(digest, uint32_t{1});
}

Payload Payload::of(Bytes bytes) {
  const auto kept = std::make_shared<const Bytes>(std::move(bytes));
  return {{*kept}, kept};
}

Bytes Payload::copy() const {
  Bytes bytes;
  for (const auto& part : parts) bytes.insert(bytes.end(), part.begin(), part.end());
  return bytes;
}

std::string difference(const MessageHeader& mine, const MessageHeader& theirs) {
  std::string text;
  const auto field = [&](const char* name, const auto& a, const auto& b) {
    if (a != b) text += fmt::format("{}{} {} != {}", text.empty() ? "" : ", ", name, a, b);
  };
  field("collective", mine.collective, theirs.collective);
  field("kind", kind_text(mine.kind), kind_text(theirs.kind));
  field("dtype", dtype_text(mine.dtype), dtype_text(theirs.dtype));
  field("group", mine.group, theirs.group);
  field("bytes", mine.bytes, theirs.bytes);
  field("purpose (op, sizes, placements)", mine.purpose, theirs.purpose);
  return text;
}

}  // namespace lockstep
