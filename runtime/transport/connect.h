#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/file_descriptor.h"

namespace lockstep {

/// Where a rank listens: "127.0.0.1:40123".
struct Address {
  std::string host;
  uint16_t port = 0;
  std::string text() const;
};

/// "HOST:PORT", at most 256 characters. Throws BadInput.
Address parse_address(const std::string& text);

/// A listening TCP socket; port 0: one that the system picks, `bound` tells which. Throws TransportError.
FileDescriptor listen_on(const Address& address, Address& bound);

/// A connection to it, or none.
FileDescriptor open_connection(const Address& address);

struct Membership {
  int rank = 0, world = 1;
  std::string token;                    ///< shared by all ranks of the job and by nobody else
  std::chrono::milliseconds timeout{};  ///< for all of it
};

/// One connection to every other rank: we connect to lower ranks, and higher ones to us. Whoever does not prove that it
/// belongs to the job (handshake.h) is sent away, and keeps nobody waiting.
///
/// `address_of` may wait until that rank has published its own. Throws TransportError naming the ranks that are
/// missing.
std::vector<FileDescriptor> connect_ranks(const Membership& membership, const FileDescriptor& listener,
                                          const std::function<Address(int rank)>& address_of);

}  // namespace lockstep
