#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "runtime/transport/connect.h"

namespace lockstep {
namespace {

using Resolved = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Null if the host is not known; `error` is for gai_strerror().
Resolved resolve(const Address& address, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  return Resolved(found, ::freeaddrinfo);
}

}  // namespace

std::string Address::text() const { return fmt::format("{}:{}", host, port); }

Address parse_address(const std::string& text) {
  Address address;
  const auto colon = text.rfind(':');
  const auto* begin = text.data() + (colon == text.npos ? text.size() : colon + 1);
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, address.port);
  if (text.size() > 256 || colon == 0 || colon == text.npos || error != std::errc{} || stop != end)
    fail<BadInput>("'{}' is not an address; expected HOST:PORT", text.substr(0, 256));
  address.host = text.substr(0, colon);
  return address;
}

FileDescriptor listen_on(const Address& address, Address& bound) {
  int error = 0;
  const auto found = resolve(address, error);
  if (!found) fail<TransportError>("{} cannot be listened on: {}", address.text(), ::gai_strerror(error));
  FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int again = 1;  // right after a run that used the port
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again);
  if (::bind(listener.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(listener.get(), SOMAXCONN) != 0)
    fail<TransportError>("{} cannot be listened on: {}", address.text(), std::strerror(errno));
  sockaddr_in name{};
  socklen_t size = sizeof name;
  LOCKSTEP_CHECK(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
  bound = {address.host, ntohs(name.sin_port)};
  return listener;
}

FileDescriptor open_connection(const Address& address) {
  int error = 0;
  const auto found = resolve(address, error);
  if (!found) return {};
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0 ? std::move(socket) : FileDescriptor();
}

}  // namespace lockstep
