#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/files/sealed_memory.h"
#include "runtime/transport/flight/flight_memory.h"

namespace lockstep {

/// Not open if the system gives none.
FileDescriptor create_flight_memory();

/// One collective of a rank, read from its FlightMemory.
struct FlightNote {
  uint64_t sequence = 0;  ///< number of the collective on its rank, from 1
  FlightState state = FlightState::kNone;
  std::vector<int> ranks;  ///< that it waits for (the first 16), or that it disagrees with
  uint64_t collective = 0, group = 0, bytes = 0;
  std::string kind, dtype, axis;
  std::string op;     ///< "layers.3.attention, mm"
  std::string op_id;  ///< "step 17, microbatch 0, backward, layers.3.attention, mm #2"
  double begun = 0;   ///< seconds of the steady clock

  /// "collective 118 (all_gather of 512 bytes Float on dp_shard)"
  std::string text() const;
};

/// The launcher's view of what a rank wrote down. The rank is not trusted: whatever it wrote, a note has bounded,
/// printable texts, and ranks below `world`.
class FlightRecord {
 public:
  FlightRecord(const FileDescriptor& memory, int world);

  /// The newest collective; none if the rank has begun none.
  std::optional<FlightNote> last() const;
  /// The newest, oldest first, as many as are there.
  std::vector<FlightNote> all() const;
  /// Whether it ended by an error of a collective.
  bool has_given_up() const;
  /// Whether it is about to end by itself, whatever for.
  bool is_ending() const;
  /// That error; empty if there was none.
  std::string error() const;

 private:
  std::optional<FlightNote> at(uint64_t sequence) const;

  MappedMemory mapped_;
  const FlightMemory& memory_;
  int world_;
};

}  // namespace lockstep
