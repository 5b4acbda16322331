#include "runtime/transport/faulty.h"

#include <utility>

namespace lockstep {

void FaultyTransport::post(Message message) {
  const auto fault = choose_(message);
  injected_ += fault.has_value();
  if (fault == FaultKind::kDrop) return;
  if (fault == FaultKind::kCorrupt && !message.payload.empty()) message.payload.front() ^= std::byte{0x40};
  if (fault == FaultKind::kWrongGroup) message.header.group ^= 1;
  if (fault == FaultKind::kDelay) return delayed_.push_back(std::move(message));
  if (fault == FaultKind::kReorder) return overtaken_.push_back(std::move(message));
  const int source = message.source, destination = message.destination;
  inner_->post(std::move(message));
  post_overtaken(source, destination);
}

void FaultyTransport::post_overtaken(int source, int destination) {
  for (auto& message : std::exchange(overtaken_, {})) {
    if (message.source == source && message.destination == destination)
      inner_->post(std::move(message));
    else
      overtaken_.push_back(std::move(message));
  }
}

void FaultyTransport::progress() {
  if (delayed_.empty()) return inner_->progress();
  for (auto& message : std::exchange(delayed_, {})) inner_->post(std::move(message));
}

}  // namespace lockstep
