#pragma once
#include "runtime/transport/checksum.h"
#include "runtime/transport/stream.h"
#include "runtime/transport/streams/frame.h"

/// Messages on a stream (frame.h), a piece at a time. Payloads are neither copied nor kept: they go from where they lie
/// into the stream, and out of it to where they belong.
namespace lockstep {

/// A message on its way out.
class Outgoing {
 public:
  explicit Outgoing(Message message) : message_(std::move(message)) {}

  /// Sends what the stream takes now of the next piece: what comes the other way is received between two of them, so
  /// that little piles up in the sockets and leaves the cache. How many bytes.
  size_t send(Stream& stream);
  /// Whether nothing of it is needed any more: what is lent is not sent before it was fetched.
  bool is_sent(const Stream& stream) const;
  /// Whether send() would make a difference, or has become needless.
  bool can_move(const Stream& stream) const;

 private:
  void start(Stream& stream);
  bool has_left(const Stream& stream) const;
  Spans<const std::byte> next(bool checked);
  /// Takes the payload up to `end` into the checksum.
  void sum(size_t end);

  Message message_;
  bool started_ = false;
  Frame frame_;
  std::vector<LentPart> lent_;    ///< travels instead of the payload, unless it is empty
  uint64_t ticket_ = 0;           ///< Stream::lend()
  std::vector<ConstSpan> parts_;  ///< what travels behind the frame
  size_t bytes_ = 0;              ///< of them
  size_t sent_ = 0;               ///< of frame, parts and trailer
  std::optional<Checksum> checksum_;
  size_t summed_ = 0;
  Trailer trailer_{};
};

/// The message that is arriving on a stream.
class Incoming {
 public:
  /// Receives more of the frame, and of where a lent payload lies, and nothing behind it. How many bytes.
  size_t receive_frame(Stream& stream);
  /// Whether all that is there, or can be: what is no frame has nothing behind it.
  bool has_frame(const Stream& stream) const;
  /// Nothing if it is no frame, or none for this stream. REQUIRES: has_frame().
  std::optional<MessageHeader> header(const Stream& stream) const;

  /// Receives more of the payload, a piece at most. How many bytes. REQUIRES: a header, and the same parts every time.
  size_t receive_payload(Stream& stream, MutableSpans parts);
  /// Instead: where it lies. Nothing where it has to be received.
  std::optional<BorrowedPayload> borrow(Stream& stream);
  /// REQUIRES: a header.
  bool is_complete(const Stream& stream) const;
  bool is_damaged(const Stream& stream) const;
  /// Makes room for the next message.
  void restart();

 private:
  uint64_t bytes() const { return from_frame(frame_)->bytes; }
  std::span<std::byte> table() { return std::as_writable_bytes(std::span(lent_)); }
  size_t receive_bytes(Stream& stream, MutableSpans parts);
  size_t fetch_bytes(Stream& stream, MutableSpans parts);
  void sum(const Spans<std::byte>& spans, size_t count);

  Frame frame_{};
  size_t frame_bytes_ = 0, received_ = 0;  ///< received: of payload and trailer
  bool fetched_ = false;
  std::vector<LentPart> lent_;
  size_t table_bytes_ = 0;  ///< of `lent_`
  std::optional<Checksum> checksum_;
  Trailer trailer_{};
};

}  // namespace lockstep
