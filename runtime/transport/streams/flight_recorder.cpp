#include "runtime/transport/streams/flight_recorder.h"

#include <algorithm>
#include <chrono>

namespace lockstep {
namespace {

template <size_t kSize>
void put(std::array<char, kSize>& to, std::string_view text) {
  const auto end = std::copy_n(text.begin(), std::min(text.size(), kSize), to.begin());
  if (end != to.end()) *end = '\0';
}

}  // namespace

FlightRecorder::FlightRecorder(const FileDescriptor& memory)
    : mapped_(memory, sizeof(FlightMemory)),
      memory_(*static_cast<FlightMemory*>(mapped_.get())),
      entry_(memory_.entries.data()) {}

void FlightRecorder::begin(const OpId& id, std::string_view axis, const MessageHeader& header, std::string_view dtype) {
  const uint64_t sequence = memory_.count.load(std::memory_order_relaxed) + 1;
  auto& entry = *(entry_ = &memory_.entries[sequence % FlightMemory::kEntries]);
  entry.sequence.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.state.store(FlightState::kBegun, std::memory_order_relaxed);
  entry.kind = header.kind;
  entry.phase = static_cast<uint8_t>(id.phase);
  entry.rank_count = 0;
  entry.collective = header.collective;
  entry.group = header.group;
  entry.bytes = 0;
  entry.step = id.step, entry.microbatch = id.microbatch, entry.occurrence = id.occurrence;
  entry.begun = std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds{1};
  put(entry.dtype, dtype);
  put(entry.axis, axis);
  put(entry.op, id.op);
  const std::string_view module = id.module;
  put(entry.module, module.substr(module.size() - std::min(module.size(), entry.module.size())));
  entry.sequence.store(sequence, std::memory_order_release);
  memory_.count.store(sequence, std::memory_order_release);
}

void FlightRecorder::set_ranks(std::span<const int> ranks) {
  entry_->rank_count = static_cast<uint16_t>(ranks.size());
  for (size_t i = 0; i < std::min(ranks.size(), FlightEntry::kMostRanks); ++i)
    entry_->ranks[i] = static_cast<uint16_t>(ranks[i]);
}

void FlightRecorder::waits_for(std::span<const int> ranks) {
  set_ranks(ranks);
  entry_->state.store(FlightState::kWaits, std::memory_order_release);
}

void FlightRecorder::disagrees_with(int rank) {
  set_ranks({&rank, 1});
  entry_->state.store(FlightState::kDisagrees, std::memory_order_release);
}

void FlightRecorder::end() {
  entry_->rank_count = 0;
  entry_->state.store(FlightState::kDone, std::memory_order_release);
}

void FlightRecorder::give_up(std::string_view error, std::span<const int> ranks) {
  put(memory_.error, error);
  if (entry_->state.load(std::memory_order_relaxed) == FlightState::kDisagrees) return;
  set_ranks(ranks);
  entry_->state.store(FlightState::kGaveUp, std::memory_order_release);
}

}  // namespace lockstep
