#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// What a message belongs to. Receivers compare it field by field with what they expect before they look at bytes, so
/// that ranks which disagree about a collective get an error with a diff instead of wrong numbers.
struct MessageHeader {
  uint64_t collective = 0;  ///< number of the collective in the run
  uint32_t round = 0;       ///< of a collective with several exchanges
  uint8_t kind = 0;         ///< CollectiveKind
  int8_t dtype = 0;         ///< c10::ScalarType
  uint64_t group = 0;       ///< digest of the group's ranks
  uint64_t bytes = 0;
  uint64_t checksum = 0;  ///< XXH3-64 of the payload

  bool operator==(const MessageHeader&) const = default;
  /// "collective 12 round 0 all_gather Float group 4f.. 128 bytes"
  std::string text() const;
};

/// Lists the fields in which two headers differ: "kind all_gather != all_reduce, bytes 128 != 64".
std::string difference(const MessageHeader& mine, const MessageHeader& theirs);

using Bytes = std::vector<std::byte>;

struct Message {
  int source = 0, destination = 0;
  MessageHeader header;
  Bytes payload;
};

/// Moves messages between ranks. Messages of one (source, destination) pair arrive in the order they were posted unless
/// a fault is injected. Calls return at once; a collective is a state machine that posts, then takes until all is
/// there.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Hands a message over. Never blocks.
  virtual void post(Message message) = 0;

  /// Takes the oldest arrived message from `source` to `destination`, or returns false.
  virtual bool take(int source, int destination, Message& out) = 0;

  /// Lets things move (time, when simulated). Throws TransportError when nothing can arrive any more.
  virtual void progress() = 0;

  /// Whether something posted still needs progress() to leave. A collective ends when nothing does: its rank may
  /// compute for long before it looks here again, and others wait.
  virtual bool is_sending() const { return false; }
};

}  // namespace lockstep
