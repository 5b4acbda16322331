#pragma once
#include <array>
#include <atomic>
#include <cstdint>

/// What a rank writes down of its last collectives, in sealed memory (sealed_memory.h) that its launcher has, too:
/// whatever ends the rank, what it did last can still be read. Of one host and one build, so it has no format.
namespace lockstep {

enum class FlightState : uint8_t {
  kNone,
  kBegun,      ///< what it sends is being handed over
  kWaits,      ///< for other ranks
  kDone,       ///< it has all it needs
  kGaveUp,     ///< it ended by an error, waiting for those ranks
  kDisagrees,  ///< with that rank, about what is done
};

/// One collective of a rank.
struct FlightEntry {
  static constexpr size_t kMostRanks = 16;

  std::atomic<uint64_t> sequence;  ///< number of the collective on its rank, from 1; 0 while it is being written
  std::atomic<FlightState> state;
  uint8_t kind, phase;
  uint16_t rank_count;                     ///< how many it waits for, of which the first stand here:
  std::array<uint16_t, kMostRanks> ranks;  ///< or the one it disagrees with
  uint64_t collective, group, bytes;       ///< bytes: that it sends
  int64_t step, microbatch, occurrence;    ///< of op_running()
  int64_t begun;                           ///< steady clock, nanoseconds: one clock for all processes of a host
  std::array<char, 12> dtype;              ///< texts are cut, and end with the array or a zero
  std::array<char, 20> axis;
  std::array<char, 40> op;
  std::array<char, 64> module;  ///< its end, if it does not fit
};

struct FlightMemory {
  static constexpr size_t kEntries = 16;

  std::atomic<uint64_t> count;  ///< of collectives begun; number n is in entry n % kEntries
  std::atomic<bool> has_left;   ///< the rank closes its connections: it ends by itself, well or not
  std::array<FlightEntry, kEntries> entries;
  std::array<char, 512> error;  ///< that ended the rank
};

static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<FlightState>::is_always_lock_free);

}  // namespace lockstep
