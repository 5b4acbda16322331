#include "runtime/transport/connect.h"

#include <fmt/ranges.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <thread>

#include "core/error.h"
#include "runtime/transport/handshake.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Buffer = std::vector<std::byte>;

void set_no_delay(const FileDescriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1000));
}

/// All of `bytes`, or false when `end` passes or the other side goes.
bool read_all(const FileDescriptor& socket, std::span<std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    pollfd event{socket.get(), POLLIN, 0};
    if (::poll(&event, 1, milliseconds_until(end)) == 0 && Clock::now() >= end) return false;
    const auto count = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (count > 0) bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

/// A few bytes always fit into an empty socket buffer.
bool write_all(const FileDescriptor& socket, std::span<const std::byte> bytes) {
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

/// Our side towards the lower rank `peer`; nothing if it did not prove itself.
FileDescriptor introduce(const Membership& me, int peer, const Address& address, Clock::time_point end) {
  auto socket = open_connection(address);
  if (!socket.is_open()) return {};
  set_no_delay(socket);
  const Hello hello{me.world, me.rank, fresh_nonce()};
  std::array<std::byte, sizeof(Nonce) + sizeof(Proof)> answer;
  if (!write_all(socket, to_bytes(hello)) || !read_all(socket, answer, end)) return {};
  Nonce nonce;
  std::copy_n(answer.begin(), nonce.size(), nonce.begin());
  if (!equal(std::span(answer).subspan(nonce.size()), prove(me.token, "accepts", hello, peer, nonce))) return {};
  return write_all(socket, prove(me.token, "connects", hello, peer, nonce)) ? std::move(socket) : FileDescriptor();
}

FileDescriptor connect_to(const Membership& me, int peer, const Address& address, Clock::time_point end) {
  while (Clock::now() < end) {
    auto socket = introduce(me, peer, address, end);
    if (socket.is_open()) return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  fail<TransportError>("rank {} could not connect to rank {} at {}: nobody there proves that it belongs to this job",
                       me.rank, peer, address.text());
}

/// Somebody who has connected, until it has proved itself.
struct Visitor {
  FileDescriptor socket;
  Clock::time_point end;
  Buffer bytes = {};
  Hello hello = {};
  Nonce nonce = {};
  bool answered = false;
};

/// The side that accepts: visitors are heard side by side, each for a few seconds.
class Reception {
 public:
  Reception(const Membership& me, const FileDescriptor& listener, Clock::time_point end)
      : me_(me), listener_(listener), end_(end), sockets_(static_cast<size_t>(me.world)) {}

  std::vector<FileDescriptor> run() {
    while (!missing().empty()) {
      if (Clock::now() >= end_)
        fail<TransportError>("rank {}: rank {} did not connect in time", me_.rank, fmt::join(missing(), ", "));
      wait();
      admit();
      visitors_.remove_if([this](Visitor& visitor) { return !hear(visitor); });
    }
    return std::move(sockets_);
  }

 private:
  static constexpr size_t kMostVisitors = 256;

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (int rank = me_.rank + 1; rank < me_.world; ++rank)
      if (!sockets_[static_cast<size_t>(rank)].is_open()) ranks.push_back(rank);
    return ranks;
  }

  void wait() const {
    std::vector<pollfd> events{{listener_.get(), POLLIN, 0}};
    for (const auto& visitor : visitors_) events.push_back({visitor.socket.get(), POLLIN, 0});
    ::poll(events.data(), events.size(), std::min(milliseconds_until(end_), 100));
  }

  void admit() {
    while (visitors_.size() < kMostVisitors) {
      FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) return;
      set_no_delay(socket);
      visitors_.push_back({std::move(socket), Clock::now() + std::chrono::seconds{5}});
    }
  }

  /// Whether it may stay.
  bool hear(Visitor& visitor) {
    const size_t wanted = visitor.answered ? sizeof(Proof) : kHelloBytes, before = visitor.bytes.size();
    visitor.bytes.resize(wanted);
    const auto count = ::recv(visitor.socket.get(), visitor.bytes.data() + before, wanted - before, MSG_DONTWAIT);
    const bool nothing = count < 0 && (errno == EAGAIN || errno == EINTR);
    visitor.bytes.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count <= 0) return nothing && Clock::now() < visitor.end;
    if (visitor.bytes.size() < wanted) return true;
    return visitor.answered ? welcome(visitor) : answer(visitor);
  }

  bool answer(Visitor& visitor) const {
    if (!read_hello(std::span<const std::byte, kHelloBytes>(visitor.bytes), visitor.hello)) return false;
    if (visitor.hello.world != me_.world || visitor.hello.rank <= me_.rank || visitor.hello.rank >= me_.world)
      return false;
    visitor.nonce = fresh_nonce();
    visitor.answered = true;
    visitor.bytes.assign(visitor.nonce.begin(), visitor.nonce.end());
    const auto proof = prove(me_.token, "accepts", visitor.hello, me_.rank, visitor.nonce);
    visitor.bytes.insert(visitor.bytes.end(), proof.begin(), proof.end());
    const auto message = std::exchange(visitor.bytes, {});
    return write_all(visitor.socket, message);
  }

  /// The last word: from here on it is a rank, or gone.
  bool welcome(Visitor& visitor) {
    auto& place = sockets_[static_cast<size_t>(visitor.hello.rank)];
    const auto expected = prove(me_.token, "connects", visitor.hello, me_.rank, visitor.nonce);
    if (equal(visitor.bytes, expected) && !place.is_open()) place = std::move(visitor.socket);
    return false;
  }

  const Membership& me_;
  const FileDescriptor& listener_;
  Clock::time_point end_;
  std::vector<FileDescriptor> sockets_;
  std::list<Visitor> visitors_;
};

}  // namespace

std::vector<FileDescriptor> connect_ranks(const Membership& membership, const FileDescriptor& listener,
                                          const std::function<Address(int rank)>& address_of) {
  const auto end = Clock::now() + membership.timeout;
  std::vector<FileDescriptor> lower;
  for (int rank = 0; rank < membership.rank; ++rank)
    lower.push_back(connect_to(membership, rank, address_of(rank), end));
  auto sockets = Reception(membership, listener, end).run();
  std::move(lower.begin(), lower.end(), sockets.begin());
  return sockets;
}

}  // namespace lockstep
