#include "runtime/transport/rendezvous/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

#include "core/error.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
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

/// An abstract name: it begins with a zero, and its length counts.
class LocalName {
 public:
  explicit LocalName(const std::string& name) {
    address_.sun_family = AF_UNIX;
    length_ = std::min(name.size(), sizeof address_.sun_path - 1);
    std::copy_n(name.data(), length_, address_.sun_path + 1);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length_); }

 private:
  sockaddr_un address_{};
  size_t length_ = 0;
};

/// The IP address of one end of a connection; empty if it has none.
std::string ip_of(const sockaddr_storage& end) {
  char text[INET6_ADDRSTRLEN] = "";
  const auto* four = reinterpret_cast<const sockaddr_in*>(&end);
  const auto* six = reinterpret_cast<const sockaddr_in6*>(&end);
  if (end.ss_family == AF_INET) ::inet_ntop(AF_INET, &four->sin_addr, text, sizeof text);
  if (end.ss_family == AF_INET6) ::inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof text);
  return text;
}

/// Whether no wire is between the two ends.
bool is_within_host(const FileDescriptor& socket) {
  sockaddr_storage mine{}, other{};
  socklen_t my_size = sizeof mine, other_size = sizeof other;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&mine), &my_size) != 0) return false;
  if (::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&other), &other_size) != 0) return false;
  const auto ip = ip_of(mine);
  return !ip.empty() && ip == ip_of(other);
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

FileDescriptor open_connection(const Address& address, Clock::time_point end) {
  int error = 0;
  const auto found = resolve(address, error);
  if (!found) return {};
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS || !wait_for_event(socket, POLLOUT, end)) return {};
  socklen_t size = sizeof error;
  const bool known = ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0;
  return known && error == 0 ? std::move(socket) : FileDescriptor();
}

void set_no_delay(const FileDescriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void set_unpaced_within_host(const FileDescriptor& socket) {
  constexpr std::string_view kPlainest = "reno";  // every Linux has it, and lets everybody choose it
  if (is_within_host(socket))
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_CONGESTION, kPlainest.data(), kPlainest.size());
}

FileDescriptor listen_locally(const std::string& name) {
  const LocalName local(name);
  FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::bind(listener.get(), local.get(), local.size()) != 0 || ::listen(listener.get(), SOMAXCONN) != 0)
    fail<TransportError>("the local socket {} cannot be listened on: {}", name, std::strerror(errno));
  return listener;
}

FileDescriptor open_locally(const std::string& name, bool& busy) {
  const LocalName local(name);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool connected = ::connect(socket.get(), local.get(), local.size()) == 0;
  busy = !connected && (errno == EAGAIN || errno == EINTR);
  return connected ? std::move(socket) : FileDescriptor();
}

bool wait_for_event(const FileDescriptor& descriptor, short events, Clock::time_point end) {
  pollfd event{descriptor.get(), events, 0};
  while (Clock::now() < end) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    if (::poll(&event, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1000))) > 0) return true;
  }
  return false;
}

}  // namespace lockstep
