#include "runtime/transport/flight/flight_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/collective_kind.h"
#include "core/op_text.h"

namespace lockstep {
namespace {

template <size_t kSize>
std::string text_of(const std::array<char, kSize>& chars) {
  const auto copy = chars;  // it may change
  std::string text(copy.begin(), std::find(copy.begin(), copy.end(), '\0'));
  for (auto& letter : text)
    if (letter < ' ' || letter > '~') letter = '?';
  return text;
}

Phase phase_of(uint8_t phase) { return phase < std::size(kPhaseNames) ? static_cast<Phase>(phase) : Phase::kInit; }

std::vector<int> ranks_of(const FlightEntry& entry, int world) {
  std::vector<int> ranks;
  const size_t count = std::min<size_t>(entry.rank_count, FlightEntry::kMostRanks);
  for (size_t i = 0; i < count; ++i)
    if (const int rank = entry.ranks[i]; rank < world) ranks.push_back(rank);
  return ranks;
}

FlightNote note_of(const FlightEntry& entry, uint64_t sequence, int world) {
  FlightNote note;
  note.sequence = sequence;
  note.state = std::min(entry.state.load(std::memory_order_acquire), FlightState::kDisagrees);
  note.ranks = ranks_of(entry, world);
  note.collective = entry.collective, note.group = entry.group, note.bytes = entry.bytes;
  note.kind = kind_text(entry.kind);
  note.dtype = text_of(entry.dtype);
  note.axis = text_of(entry.axis);
  const auto module = text_of(entry.module), op = text_of(entry.op);
  note.op = fmt::format("{}{}{}", module, module.empty() ? "" : ", ", op);
  note.op_id = fmt::format("step {}, {}", entry.step,
                           op_text(entry.microbatch, phase_of(entry.phase), module, op, entry.occurrence));
  note.begun = static_cast<double>(entry.begun) * 1e-9;
  return note;
}

}  // namespace

FileDescriptor create_flight_memory() { return create_sealed_memory(sizeof(FlightMemory)); }

std::string FlightNote::text() const {
  return fmt::format("collective {} ({} of {} bytes {} on {})", collective, kind, bytes, dtype, axis);
}

FlightRecord::FlightRecord(const FileDescriptor& memory, int world)
    : mapped_(memory, sizeof(FlightMemory)), memory_(*static_cast<const FlightMemory*>(mapped_.get())), world_(world) {}

/// Nothing if the rank was interrupted while it wrote this one down.
std::optional<FlightNote> FlightRecord::at(uint64_t sequence) const {
  const auto& entry = memory_.entries[sequence % FlightMemory::kEntries];
  if (sequence == 0 || entry.sequence.load(std::memory_order_acquire) != sequence) return std::nullopt;
  return note_of(entry, sequence, world_);
}

std::vector<FlightNote> FlightRecord::all() const {
  std::vector<FlightNote> notes;
  const uint64_t count = memory_.count.load(std::memory_order_acquire);
  for (uint64_t age = std::min<uint64_t>(count, FlightMemory::kEntries); age-- > 0;)
    if (auto note = at(count - age)) notes.push_back(std::move(*note));
  return notes;
}

std::optional<FlightNote> FlightRecord::last() const {
  auto notes = all();
  return notes.empty() ? std::nullopt : std::optional(std::move(notes.back()));
}

std::string FlightRecord::error() const { return text_of(memory_.error); }

bool FlightRecord::is_ending() const { return has_given_up() || memory_.has_left.load(std::memory_order_acquire); }

bool FlightRecord::has_given_up() const {
  const auto note = at(memory_.count.load(std::memory_order_acquire));
  return note && (note->state == FlightState::kGaveUp || note->state == FlightState::kDisagrees);
}

}  // namespace lockstep
