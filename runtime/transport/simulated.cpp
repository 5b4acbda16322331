#include "runtime/transport/simulated.h"

#include "core/error.h"

namespace lockstep {

void SimulatedTransport::post(Message message) {
  const std::lock_guard lock(mutex_);
  const Pair pair{message.source, message.destination};
  in_flight_[pair].push_back(std::move(message));
  wake_all();
}

bool SimulatedTransport::take(int source, int destination, Message& out) {
  const std::lock_guard lock(mutex_);
  const auto found = arrived_.find({source, destination});
  if (found == arrived_.end()) {
    looked_.try_emplace(std::this_thread::get_id(), events_);
    return false;
  }
  out = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) arrived_.erase(found);
  return true;
}

bool SimulatedTransport::deliver_one() {
  if (in_flight_.empty()) return false;
  auto chosen = std::next(in_flight_.begin(), static_cast<ptrdiff_t>(random_() % in_flight_.size()));
  arrived_[chosen->first].push_back(std::move(chosen->second.front()));
  chosen->second.pop_front();
  if (chosen->second.empty()) in_flight_.erase(chosen);
  wake_all();
  return true;
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
  if (stuck_) fail<TransportError>("simulated transport: every rank waits and no message is in flight");
}

void SimulatedTransport::leave() {
  const std::lock_guard lock(mutex_);
  --drivers_;
  if (waiting_ >= drivers_ && in_flight_.empty()) stuck_ = true;
  changed_.notify_all();
}

}  // namespace lockstep
