#include "core/files/pass_descriptor.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

namespace lockstep {
namespace {

/// Room for one: the system closes what does not fit.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))];
};

}  // namespace

bool send_with(const FileDescriptor& socket, std::span<const std::byte> bytes, const FileDescriptor& passed) {
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (passed.is_open()) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    auto* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int value = passed.get();
    std::memcpy(CMSG_DATA(header), &value, sizeof value);
  }
  return ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_with(const FileDescriptor& socket, std::span<std::byte> bytes, FileDescriptor& passed) {
  iovec part{bytes.data(), bytes.size()};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const auto count = ::recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0) return count;
  const auto* header = CMSG_FIRSTHDR(&message);
  if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof(int))) {
    int value = -1;
    std::memcpy(&value, CMSG_DATA(header), sizeof value);
    passed.reset(value);
  }
  return count;
}

}  // namespace lockstep
