#include "runtime/transport/streams/socket_stream.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "runtime/transport/rendezvous/address.h"

namespace lockstep {
namespace {

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// What sendmsg() and recvmsg() take.
struct Vector {
  template <class Byte>
  explicit Vector(std::span<const std::span<Byte>> spans) {
    for (const auto& span : spans) {
      parts[header.msg_iovlen++] = {const_cast<std::byte*>(span.data()), span.size()};
      bytes += span.size();
    }
    header.msg_iov = parts;
  }
  iovec parts[Spans<std::byte>::kMost];
  msghdr header{};
  size_t bytes = 0;
};

}  // namespace

SocketStream::SocketStream(FileDescriptor socket) : socket_(std::move(socket)) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  set_unpaced_within_host(socket_);
}

size_t SocketStream::send(ConstSpans from) {
  const Vector vector(from);
  if (vector.bytes == 0 || !writable_) return 0;
  const auto count = ::sendmsg(socket_.get(), &vector.header, MSG_NOSIGNAL);
  if (count < 0 && !would_block()) close(std::strerror(errno));
  writable_ = count == static_cast<ssize_t>(vector.bytes);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

size_t SocketStream::receive(MutableSpans to) {
  Vector vector(to);
  if (vector.bytes == 0 || !readable_) return 0;
  const auto count = ::recvmsg(socket_.get(), &vector.header, 0);
  if (count == 0) close("it was closed by the other side");
  if (count < 0 && !would_block()) close(std::strerror(errno));
  readable_ = count == static_cast<ssize_t>(vector.bytes);
  return count < 0 ? 0 : static_cast<size_t>(count);
}

void SocketStream::look(bool to_receive, bool to_send) {
  auto event = asleep(to_receive, to_send);
  if (::poll(&event, 1, 0) > 0) awake(event.revents);
}

pollfd SocketStream::asleep(bool to_receive, bool to_send) {
  const int events = (to_receive ? POLLIN : 0) | (to_send ? POLLOUT : 0);
  return {socket_.get(), static_cast<short>(events), 0};
}

void SocketStream::awake(short events) {
  if (events & (POLLIN | POLLHUP | POLLERR)) readable_ = true;
  if (events & (POLLOUT | POLLHUP | POLLERR)) writable_ = true;
}

}  // namespace lockstep
