#include "runtime/transport/rendezvous/connection_listener.h"

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/error.h"
#include "core/files/pass_descriptor.h"

namespace lockstep {
namespace {

constexpr size_t kMostPending = 256;
constexpr std::chrono::seconds kHearing{5};

}  // namespace

ConnectionListener::ConnectionListener(const Membership& me, const Listeners& listeners, Clock::time_point end)
    : me_(me), listeners_(listeners), end_(end), connections_(static_cast<size_t>(me.world)) {}

std::vector<Connection> ConnectionListener::run() {
  while (!missing().empty()) {
    if (Clock::now() >= end_)
      fail<TransportError>("rank {}: rank {} did not connect in time", me_.rank, fmt::join(missing(), ", "));
    wait();
    admit(listeners_.tcp, /*local=*/false);
    if (listeners_.local.is_open()) admit(listeners_.local, /*local=*/true);
    pending_.remove_if([this](PendingConnection& peer) { return !read_greeting(peer); });
  }
  return std::move(connections_);
}

std::vector<int> ConnectionListener::missing() const {
  std::vector<int> ranks;
  for (int rank = me_.rank + 1; rank < me_.world; ++rank)
    if (!connections_[static_cast<size_t>(rank)].socket.is_open()) ranks.push_back(rank);
  return ranks;
}

void ConnectionListener::wait() const {
  std::vector<pollfd> events{{listeners_.tcp.get(), POLLIN, 0}, {listeners_.local.get(), POLLIN, 0}};
  for (const auto& peer : pending_) events.push_back({peer.connection.socket.get(), POLLIN, 0});
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  ::poll(events.data(), events.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 100)));
}

void ConnectionListener::admit(const FileDescriptor& listener, bool local) {
  while (pending_.size() < kMostPending) {
    FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) return;
    set_no_delay(socket);
    pending_.push_back({{std::move(socket), {}}, Clock::now() + kHearing, {me_.world, me_.rank}, local});
  }
}

bool ConnectionListener::read_greeting(PendingConnection& peer) {
  std::array<std::byte, std::max(kHelloBytes, sizeof(Proof))> buffer;
  auto& [socket, memory] = peer.connection;
  const auto count = receive_with(socket, std::span(buffer).first(peer.acceptance.wanted()), memory);
  const bool nothing = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (count <= 0) return nothing && Clock::now() < peer.end;
  std::vector<std::byte> reply;
  const auto heard = std::span(buffer).first(static_cast<size_t>(count));
  const auto verdict = peer.acceptance.read_greeting(heard, me_.token, reply);
  if (verdict == Acceptance::Verdict::kProved) welcome(peer);
  return verdict == Acceptance::Verdict::kContinue && (reply.empty() || send_with(socket, reply, {}));
}

/// The last word: from here on it is a rank, or gone.
void ConnectionListener::welcome(PendingConnection& peer) {
  auto& place = connections_[static_cast<size_t>(peer.acceptance.peer())];
  const bool whole = peer.connection.memory.is_open() == peer.local;  // no descriptor was left for the memory
  if (!place.socket.is_open() && whole) place = std::move(peer.connection);
}

}  // namespace lockstep
