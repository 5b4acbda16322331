#pragma once
#include <span>

#include "core/files/sealed_memory.h"
#include "runtime/context/op_id.h"
#include "runtime/transport/flight/flight_memory.h"
#include "runtime/transport/transport.h"

namespace lockstep {

/// Writes down what this rank does, as it goes: some 200 ns for each collective.
class FlightRecorder {
 public:
  /// `memory`: from create_flight_memory() of the launcher. Throws TransportError if it is something else.
  explicit FlightRecorder(const FileDescriptor& memory);

  /// A collective begins; what follows is about it.
  void begin(const OpId& id, std::string_view axis, const MessageHeader& header, std::string_view dtype);
  void sends(uint64_t bytes) { entry_->bytes = bytes; }
  void waits_for(std::span<const int> ranks);
  void disagrees_with(int rank);
  void end();
  /// It ended by this error, while it waited for these ranks.
  void give_up(std::string_view error, std::span<const int> ranks);
  /// It closes its connections.
  void leave() { memory_.has_left.store(true, std::memory_order_release); }

 private:
  void set_ranks(std::span<const int> ranks);

  MappedMemory mapped_;
  FlightMemory& memory_;
  FlightEntry* entry_;
};

}  // namespace lockstep
