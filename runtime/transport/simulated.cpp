#include "runtime/transport/simulated.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/transport/checksum.h"

namespace lockstep {

void SimulatedTransport::post(Message message) {
  const uint64_t checksum = message.checksum ? *message.checksum : checksum_of(message.payload);
  Parcel parcel{message.header, message.payload.copy(), checksum};
  const std::lock_guard lock(mutex_);
  in_flight_[{message.source, message.destination}].push_back(std::move(parcel));
  wake_all();
}

std::optional<MessageHeader> SimulatedTransport::arrived(int source, int destination) {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find({source, destination});
  auto& missed = missed_[destination];
  if (found != arrived_.end()) {
    missed.erase(source);
    return found->second.front().header;
  }
  missed.insert(source);
  looked_.try_emplace(std::this_thread::get_id(), events_);
  return std::nullopt;
}

bool SimulatedTransport::receive(int source, int destination, std::span<const MutableSpan> parts) {
  const auto parcel = take(source, destination);
  if (checksum_of({{parcel.bytes}, nullptr}) != parcel.checksum || parcel.bytes.size() != parcel.header.bytes)
    fail_damaged(source, destination, parcel.header);
  const auto* from = parcel.bytes.data();
  for (const auto& part : parts) {
    std::copy_n(from, part.size(), part.data());
    from += part.size();
  }
  return true;
}

SimulatedTransport::Parcel SimulatedTransport::take(int source, int destination) {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find({source, destination});
  LOCKSTEP_CHECK(found != arrived_.end(), "nothing has arrived");
  auto parcel = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) arrived_.erase(found);
  return parcel;
}

std::optional<std::pair<int, int>> SimulatedTransport::deliver() {
  const std::lock_guard lock(mutex_);
  return deliver_one();
}

std::optional<SimulatedTransport::Pair> SimulatedTransport::deliver_one() {
  if (in_flight_.empty()) return std::nullopt;
  auto chosen = std::next(in_flight_.begin(), static_cast<ptrdiff_t>(random_() % in_flight_.size()));
  const auto pair = chosen->first;
  arrived_[pair].push_back(std::move(chosen->second.front()));
  chosen->second.pop_front();
  if (chosen->second.empty()) in_flight_.erase(chosen);
  wake_all();
  return pair;
}

void SimulatedTransport::wake_all() {
  ++events_;
  waiting_ = 0;
  changed_.notify_all();
}

void SimulatedTransport::progress() {
  std::unique_lock lock(mutex_);
  const auto looked = looked_.extract(std::this_thread::get_id());
  const uint64_t seen = looked ? looked.mapped() : events_;
  if (deliver_one() || events_ != seen) return;
  if (++waiting_ >= drivers_) stuck_ = true;
  if (stuck_) changed_.notify_all();
  changed_.wait(lock, [&] { return stuck_ || events_ != seen; });
  if (stuck_) fail_stuck();
}

void SimulatedTransport::fail_stuck() const {
  std::vector<std::string> waits;
  for (const auto& [rank, others] : missed_)
    if (!others.empty()) waits.push_back(fmt::format("rank {} waits for rank {}", rank, fmt::join(others, ", ")));
  fail<TransportError>("simulated transport: {} and no message is in flight", fmt::join(waits, ", "));
}

void SimulatedTransport::leave() {
  const std::lock_guard lock(mutex_);
  --drivers_;
  if (waiting_ >= drivers_ && in_flight_.empty()) stuck_ = true;
  changed_.notify_all();
}

}  // namespace lockstep
