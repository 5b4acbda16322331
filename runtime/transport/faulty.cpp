#include "runtime/transport/faulty.h"

#include <utility>

#include "runtime/transport/checksum.h"

namespace lockstep {
namespace {

/// Other bytes with the checksum of the right ones.
void corrupt(Message& message) {
  message.checksum = checksum_of(message.payload);
  auto bytes = message.payload.copy();
  bytes.front() ^= std::byte{0x40};
  message.payload = Payload::of(std::move(bytes));
}

/// A message that is kept: its parts may change once the collective is over.
Message kept(Message message) {
  message.payload = Payload::of(message.payload.copy());
  return message;
}

}  // namespace

void FaultyTransport::post(Message message) {
  const auto fault = choose_(message);
  injected_ += fault.has_value();
  if (fault == FaultKind::kDrop) return;
  if (fault == FaultKind::kCorrupt && message.header.bytes > 0) corrupt(message);
  if (fault == FaultKind::kWrongGroup) message.header.group ^= 1;
  if (fault == FaultKind::kWrongKind) message.header.kind ^= 1;
  if (fault == FaultKind::kWrongDtype) message.header.dtype ^= 1;
  if (fault == FaultKind::kWrongBytes) message.header.bytes += 1;
  if (fault == FaultKind::kDelay) return delayed_.push_back(kept(std::move(message)));
  if (fault == FaultKind::kReorder) return overtaken_.push_back(kept(std::move(message)));
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
