#pragma once
#include <functional>
#include <vector>

#include "runtime/transport/rendezvous/address.h"

namespace lockstep {

/// What may carry messages between two ranks.
enum class Carrier {
  kAny,     ///< shared memory between ranks of one host, TCP between hosts
  kMemory,  ///< ranks of other hosts are an error
  kTcp,
  kGloo,  ///< c10d's process group (runtime/transport/process_group), instead of connect_ranks()
};

struct Membership {
  int rank = 0, world = 1;
  std::string token;                    ///< shared by all ranks of the job and by nobody else
  std::chrono::milliseconds timeout{};  ///< for all of it
  Carrier carrier = Carrier::kAny;
};

/// Where a rank can be reached.
struct Reach {
  Address address;
  std::string local_name = {};  ///< for ranks of the same host (listen_locally()); empty: by TCP only
};

/// The sockets of our own Reach. `local` may be none.
struct Listeners {
  FileDescriptor tcp, local;
};

/// To one other rank.
struct Connection {
  FileDescriptor socket;
  FileDescriptor memory;  ///< none, or memory that both ranks have (pair_memory.h); the socket is a Unix socket then
};

/// Listens on `address`, and, unless only TCP is wanted, under a name that nobody can guess.
Listeners listen_for(Carrier carrier, const Address& address, Reach& reach);

/// One connection to every other rank: we connect to lower ranks, and higher ones to us. Whoever does not prove that it
/// belongs to the job (handshake.h) is sent away, and keeps nobody waiting. Memory comes from the rank that connects,
/// once the other has proved itself, together with its own proof; it travels on a Unix socket, so there is no name by
/// which others could open it, and nothing is left behind.
///
/// `reach_of` may wait until that rank has published its own. Throws TransportError naming the ranks that are missing.
std::vector<Connection> connect_ranks(const Membership& membership, const Listeners& listeners,
                                      const std::function<Reach(int rank)>& reach_of);

}  // namespace lockstep
