#pragma once
#include <chrono>
#include <cstdint>
#include <string>

#include "core/files/file_descriptor.h"

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

/// A connection to it, or none by `end`. (A name that is no number is looked up in the system's own time.)
FileDescriptor open_connection(const Address& address, std::chrono::steady_clock::time_point end);

/// Small messages leave at once. Nothing on sockets that are not TCP's.
void set_no_delay(const FileDescriptor& socket);

/// Gives a TCP connection whose two ends have one address the plainest congestion control: nothing is lost on the way,
/// and one that paces packets (BBR, the default of some systems) takes nearly twice the time there. Nothing on others.
void set_unpaced_within_host(const FileDescriptor& socket);

/// A listening Unix socket of an abstract name: there is no file, and it is gone with its process. Only processes of
/// this host (and network namespace) find it. Throws TransportError.
FileDescriptor listen_locally(const std::string& name);

/// A connection to it; none if nobody of this host listens there. `busy`: somebody does, but not now.
FileDescriptor open_locally(const std::string& name, bool& busy);

/// Waits for events of a descriptor, until `end` at most. Whether there were any.
bool wait_for_event(const FileDescriptor& descriptor, short events, std::chrono::steady_clock::time_point end);

}  // namespace lockstep
