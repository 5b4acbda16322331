#include "runtime/transport/streams/stream_message.h"

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

/// So much of a checked payload is summed and moved in one go: it stays in the cache between the two. With less, system
/// calls cost more than that saves.
constexpr size_t kWindow = size_t{1} << 19;

/// Adds the bytes [first, first + most) of `parts`, as far as there is room for spans. How many bytes.
template <class Byte>
size_t add_range(Spans<Byte>& to, std::span<const std::span<Byte>> parts, size_t first, size_t most) {
  const size_t before = to.bytes();
  for (const auto& part : parts) {
    if (most == 0 || to.full()) break;
    const size_t skipped = std::min(first, part.size()), count = std::min(part.size() - skipped, most);
    to.add(part.subspan(skipped, count));
    first -= skipped;
    most -= count;
  }
  return to.bytes() - before;
}

bool should_lend(const Payload& payload, const Stream& stream) {
  return payload.parts.size() <= kMostLent && stream.should_lend(payload.parts);
}

std::vector<LentPart> lent_parts(const Payload& payload) {
  std::vector<LentPart> lent;
  for (const auto& part : payload.parts) lent.push_back({reinterpret_cast<uintptr_t>(part.data()), part.size()});
  return lent;
}

size_t trailer_bytes(const Stream& stream) { return stream.is_checked() ? sizeof(Trailer) : 0; }

}  // namespace

void Outgoing::start(Stream& stream) {
  started_ = true;
  if (should_lend(message_.payload, stream)) {
    lent_ = lent_parts(message_.payload);
    ticket_ = stream.lend();
    parts_ = {std::as_bytes(std::span(lent_))};
  } else {
    parts_ = std::move(message_.payload.parts);
  }
  for (const auto& part : parts_) bytes_ += part.size();
  frame_ = to_frame(message_.header, static_cast<uint32_t>(lent_.size()));
}

void Outgoing::sum(size_t end) {
  if (message_.checksum) return;
  if (!checksum_) checksum_.emplace();
  while (summed_ < end) {
    Spans<const std::byte> spans;
    summed_ += add_range<const std::byte>(spans, parts_, summed_, end - summed_);
    for (const auto& span : spans.all()) checksum_->add(span);
  }
}

Spans<const std::byte> Outgoing::next(bool checked) {
  Spans<const std::byte> spans;
  const ConstSpan frame(frame_), trailer(trailer_);
  spans.add(frame.subspan(std::min(sent_, kFrameBytes)));
  const size_t after_frame = std::max(sent_, kFrameBytes) - kFrameBytes;
  const size_t first = std::min(after_frame, bytes_), most = checked ? kWindow : bytes_;
  const size_t end = first + add_range<const std::byte>(spans, parts_, first, most);
  if (!checked) return spans;
  sum(end);
  if (end < bytes_ || spans.full()) return spans;
  const uint64_t value = message_.checksum ? *message_.checksum : checksum_->value();
  std::memcpy(trailer_.data(), &value, sizeof value);
  spans.add(trailer.subspan(after_frame - first));
  return spans;
}

size_t Outgoing::send(Stream& stream) {
  if (!started_) start(stream);
  const size_t count = stream.send(next(stream.is_checked()).all());
  sent_ += count;
  return count;
}

bool Outgoing::has_left(const Stream& stream) const {
  return started_ && sent_ == kFrameBytes + bytes_ + trailer_bytes(stream);
}

bool Outgoing::is_sent(const Stream& stream) const {
  return has_left(stream) && (lent_.empty() || stream.fetched() >= ticket_);
}

bool Outgoing::can_move(const Stream& stream) const { return has_left(stream) ? is_sent(stream) : stream.can_send(); }

size_t Incoming::receive_frame(Stream& stream) {
  size_t count = 0;
  if (frame_bytes_ < kFrameBytes) {
    const MutableSpan rest[] = {MutableSpan(frame_).subspan(frame_bytes_)};
    count = stream.receive(rest);
    frame_bytes_ += count;
  }
  if (frame_bytes_ < kFrameBytes || has_frame(stream)) return count;
  lent_.resize(lent_of(frame_));
  const MutableSpan rest[] = {table().subspan(table_bytes_)};
  const size_t more = stream.receive(rest);
  table_bytes_ += more;
  return count + more;
}

bool Incoming::has_frame(const Stream& stream) const {
  if (frame_bytes_ < kFrameBytes) return false;
  return !header(stream) || table_bytes_ == lent_of(frame_) * sizeof(LentPart);
}

std::optional<MessageHeader> Incoming::header(const Stream& stream) const {
  if (lent_of(frame_) > 0 && !stream.can_fetch()) return std::nullopt;
  return from_frame(frame_);
}

size_t Incoming::receive_payload(Stream& stream, MutableSpans parts) {
  return lent_of(frame_) > 0 ? fetch_bytes(stream, parts) : receive_bytes(stream, parts);
}

size_t Incoming::fetch_bytes(Stream& stream, MutableSpans parts) {
  if (!fetched_) fetched_ = stream.fetch(lent_, parts);
  return fetched_ ? bytes() : 0;
}

std::optional<BorrowedPayload> Incoming::borrow(Stream& stream) {
  return lent_of(frame_) > 0 ? stream.borrow(lent_) : std::nullopt;
}

size_t Incoming::receive_bytes(Stream& stream, MutableSpans parts) {
  Spans<std::byte> spans;
  const size_t whole = bytes(), first = std::min<size_t>(received_, whole);
  const size_t end = first + add_range(spans, parts, first, stream.is_checked() ? kWindow : whole);
  if (stream.is_checked() && end == whole && !spans.full()) spans.add(MutableSpan(trailer_).subspan(received_ - first));
  const size_t count = stream.receive(spans.all());
  if (stream.is_checked()) sum(spans, std::min(count, end - first));
  received_ += count;
  return count;
}

void Incoming::sum(const Spans<std::byte>& spans, size_t count) {
  if (!checksum_) checksum_.emplace();
  for (const auto& span : spans.all()) {
    const size_t part = std::min(count, span.size());
    checksum_->add(span.first(part));
    count -= part;
  }
}

bool Incoming::is_complete(const Stream& stream) const {
  return lent_of(frame_) > 0 ? fetched_ : received_ == bytes() + trailer_bytes(stream);
}

bool Incoming::is_damaged(const Stream& stream) const {
  uint64_t expected = 0;
  std::memcpy(&expected, trailer_.data(), sizeof expected);
  return stream.is_checked() && checksum_->value() != expected;
}

void Incoming::restart() {
  frame_bytes_ = table_bytes_ = received_ = 0;
  fetched_ = false;
  if (checksum_) checksum_->restart();
}

}  // namespace lockstep
