#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

class FlightRecorder;

/// What a message belongs to. Receivers compare it field by field with what they expect before they look at bytes, so
/// that ranks which disagree about a collective get an error with a diff instead of wrong numbers.
struct MessageHeader {
  uint64_t collective = 0;  ///< number of the collective in the run
  uint32_t purpose = 0;     ///< purpose_digest()
  uint8_t kind = 0;         ///< CollectiveKind
  int8_t dtype = 0;         ///< c10::ScalarType
  uint64_t group = 0;       ///< digest of the group's ranks
  uint64_t bytes = 0;

  bool operator==(const MessageHeader&) const = default;
  /// "collective 12 all_gather Float group 4f.. 128 bytes for 81.."
  std::string text() const;
};

/// Lists the fields in which two headers differ: "kind all_gather != all_reduce, bytes 128 != 64".
std::string difference(const MessageHeader& mine, const MessageHeader& theirs);

/// MessageHeader::group of these ranks.
uint64_t group_digest(std::span<const int> ranks);

/// MessageHeader::purpose: the name of the op that asks, and what it moves (Exchange::subject). Tells apart what has as
/// many bytes: a square cut along its rows or its columns, pieces alike of tensors of several sizes. Never 0.
uint32_t purpose_digest(std::string_view op, std::span<const uint64_t> subject);

using Bytes = std::vector<std::byte>;
using ConstSpan = std::span<const std::byte>;
using MutableSpan = std::span<std::byte>;

/// The bytes of a message, in parts that lie anywhere: nothing is copied to post it.
struct Payload {
  std::vector<ConstSpan> parts;
  std::shared_ptr<const void> owner;  ///< keeps the parts alive for as long as they are needed

  /// Of bytes that travel in one part.
  static Payload of(Bytes bytes);
  /// All parts, one behind the other.
  Bytes copy() const;
};

/// Bytes that lie in another rank's memory, to be read for as long as `lease` is kept.
struct BorrowedPayload {
  std::vector<ConstSpan> parts;  ///< as Payload::parts
  std::shared_ptr<const void> lease;
};

struct Message {
  int source = 0, destination = 0;
  MessageHeader header;  ///< header.bytes is the size of the payload
  Payload payload;
  std::optional<uint64_t> checksum = {};  ///< of the payload (checksum.h), if it is not to be computed: a fault's
};

/// Moves messages between ranks. Messages of one (source, destination) pair arrive in the order they were posted unless
/// a fault is injected. Calls return at once; a collective is a state machine that posts, then receives until all is
/// there.
///
/// What a transport cannot trust it checks: damaged bytes are a TransportError that names ranks and message.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Hands a message over. Its bytes must stay as they are until is_sending() is false. Never blocks.
  virtual void post(Message message) = 0;

  /// The header of the oldest message from `source` to `destination`, once it is there. The bytes may still be coming.
  virtual std::optional<MessageHeader> arrived(int source, int destination) = 0;

  /// Moves the bytes of that message into `parts`, header.bytes in all, as they come. True once all are there: the
  /// message is gone. Until then they mean nothing; call again, with the same parts.
  /// REQUIRES: arrived().
  virtual bool receive(int source, int destination, std::span<const MutableSpan> parts) = 0;

  /// Instead of receive(), for bytes that are only read: where the sender has them. The message is gone then, and
  /// others wait until the lease is dropped and settle() has said so. Nothing where they have to be received. REQUIRES:
  /// arrived(), and no call of receive() yet.
  virtual std::optional<BorrowedPayload> borrow(int /*source*/, int /*destination*/) { return std::nullopt; }

  /// Tells senders which leases were dropped. Throws TransportError if one of them may have used its bytes for
  /// something else before: what was read means nothing.
  virtual void settle() {}

  /// Lets things move (time, when simulated), for what was asked for in vain. Throws TransportError when nothing can
  /// arrive any more.
  virtual void progress() = 0;

  /// Sends what can leave at once of what was posted. Never blocks.
  virtual void send_more() {}

  /// Whether something posted still needs progress() to leave. A collective ends when nothing does: its rank may
  /// compute for long before it looks here again, and others wait.
  virtual bool is_sending() const { return false; }

  /// Whether what arrives is always what the collective that waits is to have, in whatever order they wait: it comes
  /// from a recording, and not from ranks that send.
  virtual bool delivers_what_is_awaited() const { return false; }

  /// How long waits that begin from now on may last. Nothing where none has an end.
  virtual void set_timeout(std::chrono::milliseconds /*timeout*/) {}

  /// This rank is about to end, and why: who waits for it gets a TransportError that says so, and passes it on. The
  /// text is cut at the end of its first line. Nothing where nobody else can be waiting.
  virtual void say_last(std::string_view /*why*/) {}

  /// Who writes down what this rank does; null: nobody.
  virtual FlightRecorder* recorder() const { return nullptr; }
};

}  // namespace lockstep
