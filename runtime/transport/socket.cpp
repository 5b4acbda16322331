#include "runtime/transport/socket.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr size_t kMostAtOnce = size_t{1} << 20;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

SocketTransport::SocketTransport(int rank, std::vector<FileDescriptor> sockets, std::chrono::milliseconds timeout)
    : rank_(rank), peers_(sockets.size()), timeout_(timeout) {
  for (size_t i = 0; i < sockets.size(); ++i) {
    if (sockets[i].is_open()) ::fcntl(sockets[i].get(), F_SETFL, ::fcntl(sockets[i].get(), F_GETFL) | O_NONBLOCK);
    peers_[i].socket = std::move(sockets[i]);
  }
}

SocketTransport::~SocketTransport() { flush(); }

void SocketTransport::post(Message message) {
  LOCKSTEP_CHECK_EQ(message.source, rank_);
  auto& peer = peers_.at(static_cast<size_t>(message.destination));
  peer.outgoing.push_back({to_frame(message.header), std::move(message.payload)});
  send_some(peer);
}

bool SocketTransport::take(int source, int destination, Message& out) {
  LOCKSTEP_CHECK_EQ(destination, rank_);
  auto& peer = peers_.at(static_cast<size_t>(source));
  if (peer.arrived.empty()) {
    if (!peer.closed.empty())
      fail<TransportError>("rank {} waits for rank {}, whose connection is gone: {}", rank_, source, peer.closed);
    missed_.insert(source);
    return false;
  }
  still_since_.reset();
  out = std::move(peer.arrived.front());
  peer.arrived.pop_front();
  return true;
}

void SocketTransport::progress() {
  constexpr std::chrono::milliseconds kPatience{100};
  const bool moved = exchange(std::min(kPatience, timeout_));
  const auto now = Clock::now();
  if (moved || !still_since_) still_since_ = now;
  if (now - *still_since_ > timeout_)
    fail<TransportError>(
        "rank {} has waited {:.0f} s for rank {}, which sends and takes nothing: it is stopped, or busy elsewhere",
        rank_, std::chrono::duration<double>(timeout_).count(), fmt::join(awaited(), ", "));
  if (moved) missed_.clear();
}

std::set<int> SocketTransport::awaited() const {
  auto ranks = missed_;
  for (size_t i = 0; i < peers_.size(); ++i)
    if (!peers_[i].outgoing.empty()) ranks.insert(static_cast<int>(i));
  return ranks;
}

bool SocketTransport::is_sending() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Peer& peer) { return peer.closed.empty() && !peer.outgoing.empty(); });
}

/// As much as the system takes now.
bool SocketTransport::send_some(Peer& peer) {
  bool any = false;
  while (!peer.outgoing.empty() && peer.socket.is_open()) {
    auto& message = peer.outgoing.front();
    iovec parts[2];
    const size_t in_frame = std::min(message.sent, kFrameBytes), in_payload = message.sent - in_frame;
    parts[0] = {message.frame.data() + in_frame, kFrameBytes - in_frame};
    parts[1] = {message.payload.data() + in_payload, message.payload.size() - in_payload};
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    const auto count = ::sendmsg(peer.socket.get(), &header, MSG_NOSIGNAL);
    if (count < 0 && would_block()) break;
    if (count < 0) {
      if (peer.closed.empty()) peer.closed = std::strerror(errno);
      peer.outgoing.clear();
      break;
    }
    any = true;
    message.sent += static_cast<size_t>(count);
    if (message.sent == kFrameBytes + message.payload.size()) peer.outgoing.pop_front();
  }
  return any;
}

/// Bytes read; 0 when nothing is there, or nothing will come any more (`closed` says why).
size_t SocketTransport::read_into(Peer& peer, std::byte* to, size_t bytes) {
  const auto count = ::recv(peer.socket.get(), to, bytes, 0);
  if (count > 0) return static_cast<size_t>(count);
  if (count == 0 && peer.closed.empty()) peer.closed = "it was closed by the other side";
  if (count < 0 && !would_block()) peer.closed = std::strerror(errno);
  return 0;
}

bool SocketTransport::receive_frame(int rank, Peer& peer) {
  const auto count = read_into(peer, peer.frame.data() + peer.frame_bytes, kFrameBytes - peer.frame_bytes);
  peer.frame_bytes += count;
  if (peer.frame_bytes < kFrameBytes) return count > 0;
  const auto header = from_frame(peer.frame);
  if (!header) fail<TransportError>("rank {} sent rank {} what is no message", rank, rank_);
  peer.arriving = {rank, rank_, *header, {}};
  return true;
}

/// Memory grows with what has come, not with what a header promises.
bool SocketTransport::receive_payload(Peer& peer) {
  auto& payload = peer.arriving.payload;
  const size_t before = payload.size(), missing = peer.arriving.header.bytes - before;
  if (missing > 0) {
    payload.resize(before + std::min(missing, kMostAtOnce));
    const auto count = read_into(peer, payload.data() + before, payload.size() - before);
    payload.resize(before + count);
    if (count == 0) return false;
  }
  if (payload.size() == peer.arriving.header.bytes) {
    peer.arrived.push_back(std::move(peer.arriving));
    peer.frame_bytes = 0;
  }
  return true;
}

bool SocketTransport::receive_some(int rank) {
  auto& peer = peers_[static_cast<size_t>(rank)];
  bool any = false;
  while (peer.closed.empty()) {
    const bool more = peer.frame_bytes < kFrameBytes ? receive_frame(rank, peer) : receive_payload(peer);
    if (!more) break;
    any = true;
  }
  return any;
}

bool SocketTransport::exchange(std::chrono::milliseconds wait) {
  std::vector<pollfd> events;
  std::vector<int> ranks;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const auto& peer = peers_[i];
    if (!peer.socket.is_open() || !peer.closed.empty()) continue;
    const bool sends = !peer.outgoing.empty();
    events.push_back({peer.socket.get(), static_cast<short>(sends ? POLLIN | POLLOUT : POLLIN), 0});
    ranks.push_back(static_cast<int>(i));
  }
  if (::poll(events.data(), events.size(), static_cast<int>(wait.count())) <= 0) return false;
  bool any = false;
  for (size_t i = 0; i < events.size(); ++i) {
    auto& peer = peers_[static_cast<size_t>(ranks[i])];
    if (events[i].revents & POLLOUT) any |= send_some(peer);
    if (events[i].revents & (POLLIN | POLLHUP | POLLERR)) any |= receive_some(ranks[i]) || !peer.closed.empty();
  }
  return any;
}

void SocketTransport::flush() {
  const auto end = Clock::now() + timeout_;
  try {
    while (is_sending() && Clock::now() < end) exchange(std::chrono::milliseconds{20});
  } catch (const TransportError&) {  // a destructor: the run is over, or has its error already
  }
}

}  // namespace lockstep
