#include "runtime/transport/rendezvous/connect.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "core/error.h"
#include "core/files/pass_descriptor.h"
#include "runtime/transport/rendezvous/connection_listener.h"
#include "runtime/transport/rendezvous/handshake.h"
#include "runtime/transport/rendezvous/pair_memory.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

/// All of `bytes`, or false when `end` passes or the other side goes.
bool read_all(const FileDescriptor& socket, std::span<std::byte> bytes, Clock::time_point end) {
  while (!bytes.empty()) {
    if (!wait_for_event(socket, POLLIN, end)) return false;
    const auto count = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (count > 0) bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

/// Our side towards the lower rank `peer`, which gets `memory` once it has proved itself.
bool introduce(const Membership& me, int peer, const Connection& to, Clock::time_point end) {
  const Hello hello{me.world, me.rank, fresh_nonce()};
  std::array<std::byte, sizeof(Nonce) + sizeof(Proof)> answer;
  if (!send_with(to.socket, to_bytes(hello), {}) || !read_all(to.socket, answer, end)) return false;
  Nonce nonce;
  std::copy_n(answer.begin(), nonce.size(), nonce.begin());
  if (!equal(std::span(answer).subspan(nonce.size()), prove(me.token, "accepts", hello, peer, nonce))) return false;
  return send_with(to.socket, prove(me.token, "connects", hello, peer, nonce), to.memory);
}

/// A Unix socket and new memory for it, if the peer is of this host.
Connection open_local(const Reach& reach, bool& busy) {
  if (reach.local_name.empty()) return {};
  Connection local{open_locally(reach.local_name, busy), {}};
  if (!local.socket.is_open()) return {};
  local.memory = create_pair_memory();
  return local.memory.is_open() ? std::move(local) : Connection();
}

/// What there is by now; none if nobody answers, or not yet.
Connection open_any(const Membership& me, int peer, const Reach& reach, Clock::time_point end) {
  constexpr std::chrono::seconds kAttempt{5};
  bool busy = false;
  auto local = me.carrier == Carrier::kTcp ? Connection() : open_local(reach, busy);
  if (local.socket.is_open() || busy) return local;
  if (me.carrier == Carrier::kMemory)
    fail<TransportError>("rank {} shares no memory with rank {} at {}, which comm.transport asks for", me.rank, peer,
                         reach.address.text());
  Connection remote{open_connection(reach.address, std::min(end, Clock::now() + kAttempt)), {}};
  set_no_delay(remote.socket);
  return remote;
}

Connection connect_to(const Membership& me, int peer, const Reach& reach, Clock::time_point end) {
  while (Clock::now() < end) {
    auto connection = open_any(me, peer, reach, end);
    if (connection.socket.is_open() && introduce(me, peer, connection, end)) return connection;
    std::this_thread::sleep_for(std::chrono::milliseconds{50});
  }
  fail<TransportError>("rank {} could not connect to rank {} at {}: nobody there proves that it belongs to this job",
                       me.rank, peer, reach.address.text());
}

std::string fresh_name() { return "lockstep-" + to_hexadecimal(fresh_nonce()); }

}  // namespace

Listeners listen_for(Carrier carrier, const Address& address, Reach& reach) {
  Listeners listeners{listen_on(address, reach.address), {}};
  if (carrier == Carrier::kTcp) return listeners;
  reach.local_name = fresh_name();
  listeners.local = listen_locally(reach.local_name);
  return listeners;
}

std::vector<Connection> connect_ranks(const Membership& membership, const Listeners& listeners,
                                      const std::function<Reach(int rank)>& reach_of) {
  const auto end = Clock::now() + membership.timeout;
  std::vector<Connection> lower;
  lower.reserve(static_cast<size_t>(membership.rank));
  for (int rank = 0; rank < membership.rank; ++rank) lower.push_back(connect_to(membership, rank, reach_of(rank), end));
  auto connections = ConnectionListener(membership, listeners, end).run();
  std::move(lower.begin(), lower.end(), connections.begin());
  return connections;
}

}  // namespace lockstep
