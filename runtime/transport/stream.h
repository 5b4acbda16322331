#pragma once
#include <poll.h>

#include <array>
#include <string>

#include "runtime/transport/transport.h"

namespace lockstep {

/// A few spans that are moved at once.
template <class Byte>
class Spans {
 public:
  static constexpr size_t kMost = 32;

  bool full() const { return count_ == kMost; }
  size_t bytes() const { return bytes_; }
  std::span<const std::span<Byte>> all() const { return {spans_.data(), count_}; }

  /// Empty spans are left out. REQUIRES: !full().
  void add(std::span<Byte> span) {
    if (span.empty()) return;
    spans_[count_++] = span;
    bytes_ += span.size();
  }

 private:
  std::array<std::span<Byte>, kMost> spans_;
  size_t count_ = 0, bytes_ = 0;
};

/// Bytes in the memory of the process that sends.
struct LentPart {
  uint64_t address = 0, bytes = 0;
};

using ConstSpans = std::span<const ConstSpan>;
using MutableSpans = std::span<const MutableSpan>;

/// One end of a two-way stream of bytes between two ranks. Nothing blocks, and nothing throws: once nothing can come
/// any more, closed() says why.
class Stream {
 public:
  virtual ~Stream() = default;

  /// Sends what now fits of these bytes; at most Spans::kMost spans. How many bytes.
  virtual size_t send(ConstSpans from) = 0;
  /// Receives what has come, as far as there is room. How many bytes.
  virtual size_t receive(MutableSpans to) = 0;

  /// Whether receive() or send() would move something, as far as can be told without asking the system.
  virtual bool can_receive() const = 0;
  virtual bool can_send() const = 0;
  /// Whether the two above look at the memory and are always current. Otherwise only poll(), or look(), which does not
  /// wait, finds out what has changed.
  virtual bool is_memory() const = 0;
  virtual void look(bool /*to_receive*/, bool /*to_send*/) {}
  /// Whether the other side seems to need the core that we run on.
  virtual bool shares_core() const { return false; }
  /// Whether bytes can come to harm on the way.
  bool is_checked() const { return !is_memory(); }

  /// Whether the other side had better read these by itself: instead of bytes it is sent where they lie. Then lend()
  /// gives a number for them, and they must stay as they are until fetched() has reached it.
  virtual bool should_lend(ConstSpans /*parts*/) const { return false; }
  virtual uint64_t lend() { return 0; }
  virtual uint64_t fetched() const { return 0; }
  /// Whether we can read the other side's; fetch() does, if it is as much as `to` takes. False closes the stream.
  virtual bool can_fetch() const { return false; }
  virtual bool fetch(std::span<const LentPart> /*from*/, MutableSpans /*to*/) { return false; }
  /// Instead of fetch(), without a copy; nothing where that cannot be. settle() lets the other side know which leases
  /// were dropped; false, and the stream is closed, if what was read may have been something else.
  virtual std::optional<BorrowedPayload> borrow(std::span<const LentPart> /*from*/) { return std::nullopt; }
  virtual bool settle() { return true; }

  /// Announces that this rank sleeps in poll() with this event until something can be received (or sent). What came
  /// before is no news: ask can_receive() and can_send() once more in between. awake() ends it.
  virtual pollfd asleep(bool to_receive, bool to_send) = 0;
  virtual void awake(short events) = 0;

  /// Why nothing comes any more, behind what can_receive(); empty while something may.
  const std::string& closed() const { return closed_; }

 protected:
  void close(std::string why) {
    if (closed_.empty()) closed_ = std::move(why);
  }

 private:
  std::string closed_;
};

}  // namespace lockstep
