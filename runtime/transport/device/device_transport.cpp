#include "runtime/transport/device/device_transport.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace lockstep {

bool DeviceTransport::Round::holds(const MessageHeader& message) const {
  return header.collective == message.collective && header.group == message.group && header.kind == message.kind;
}

bool DeviceTransport::Round::awaits(int source) const {
  return std::none_of(receives.begin(), receives.end(), [&](const auto& receive) { return receive.peer == source; });
}

/// The header travels with the number of device bytes as its payload.
void DeviceTransport::post(Message message) {
  watch_.check();
  const bool is_new = rounds_.empty() || !rounds_.back().holds(message.header) || rounds_.back().has_begun;
  auto& round = is_new ? rounds_.emplace_back() : rounds_.back();
  round.header = message.header;
  round.sends.push_back({message.destination, std::move(message.payload.parts)});
  round.owners.push_back(std::move(message.payload.owner));
  Bytes size(sizeof(uint64_t));
  std::memcpy(size.data(), &message.header.bytes, size.size());
  message.header.bytes = size.size();
  message.payload = Payload::of(std::move(size));
  message.checksum.reset();
  inner_->post(std::move(message));
}

std::optional<MessageHeader> DeviceTransport::arrived(int source, int destination) {
  watch_.check();
  auto found = announced_.find(source);
  if (found == announced_.end()) {
    const auto header = inner_->arrived(source, destination);
    if (!header) return std::nullopt;
    if (header->bytes != sizeof(uint64_t))
      fail<TransportError>("rank {} announced {} to rank {}, which is no message for a device", source, header->text(),
                           destination);
    found = announced_.emplace(source, Announcement{*header}).first;
  }
  auto& [header, size, is_whole] = found->second;
  const MutableSpan parts[] = {size};
  if (!is_whole && !inner_->receive(source, destination, parts)) return std::nullopt;
  is_whole = true;
  std::memcpy(&header.bytes, size.data(), size.size());
  return header;
}

/// The round of this header, if all before it have begun; null otherwise.
DeviceTransport::Round* DeviceTransport::next_round(const MessageHeader& header) {
  for (auto& round : rounds_) {
    if (round.holds(header)) return &round;
    if (!round.has_begun) return nullptr;
  }
  LOCKSTEP_CHECK(false, "{} is received, and was not posted", header.text());
}

void DeviceTransport::progress() {
  watch_.check();
  inner_->progress();
}

void DeviceTransport::send_more() {
  watch_.check();
  inner_->send_more();
}

void DeviceTransport::set_timeout(std::chrono::milliseconds timeout) {
  inner_->set_timeout(timeout);
  watch_.set_timeout(timeout);
}

/// What the watch has noticed says more than the error of a link that it has aborted.
void DeviceTransport::begin(Round& round) {
  std::vector<int> peers;
  for (const auto& send : round.sends) peers.push_back(send.peer);
  watch_.begin(round.header, std::move(peers));
  try {
    link_->exchange(round.sends, round.receives);
  } catch (const TransportError&) {
    watch_.check();
    throw;
  }
  watch_.check();
  round.has_begun = true;
  round.owners.clear();
}

bool DeviceTransport::receive(int source, int /*destination*/, std::span<const MutableSpan> parts) {
  watch_.check();
  auto* round = next_round(announced_.at(source).header);
  if (!round) return false;
  if (round->awaits(source)) round->receives.push_back({source, {parts.begin(), parts.end()}});
  if (!round->has_begun && round->receives.size() == round->sends.size()) begin(*round);
  if (!round->has_begun) return false;
  announced_.erase(source);
  round->taken.insert(source);
  std::erase_if(rounds_, [](const Round& each) { return each.has_begun && each.taken.size() == each.sends.size(); });
  return true;
}

}  // namespace lockstep
