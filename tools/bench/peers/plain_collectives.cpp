#include "tools/bench/peers/plain_collectives.h"

#include <ATen/Functions.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstring>

#include "core/error.h"

namespace lockstep::bench {
namespace {

/// Both sides send and receive at once, as a collective does.
void exchange_plainly(const FileDescriptor& socket, const at::Tensor& out, const at::Tensor& in) {
  const auto* from = static_cast<const std::byte*>(out.const_data_ptr());
  auto* to = static_cast<std::byte*>(in.mutable_data_ptr());
  const size_t bytes = out.nbytes();
  size_t sent = 0, received = 0;
  while (sent < bytes || received < bytes) {
    const auto went = ::send(socket.get(), from + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    const auto came = ::recv(socket.get(), to + received, bytes - received, MSG_DONTWAIT);
    if (went > 0) sent += static_cast<size_t>(went);
    if (came > 0) received += static_cast<size_t>(came);
    if (went > 0 || came > 0) continue;
    pollfd event{socket.get(), static_cast<short>(sent < bytes ? POLLIN | POLLOUT : POLLIN), 0};
    ::poll(&event, 1, 1000);
    LOCKSTEP_CHECK(!(event.revents & POLLHUP), "the other process is gone");
  }
}

/// Until the other has come as often. Where both have one core, it gets it.
void meet(Meetings& meetings, size_t rank) {
  const auto times = ++meetings[rank].times;
  for (int looks = 1; meetings[1 - rank].times < times; ++looks)
    if (looks % 1024 == 0) ::sched_yield();
}

at::Tensor floats_at(std::span<std::byte> bytes, int64_t first, int64_t count) {
  return at::from_blob(bytes.data() + 4 * first, {count}, at::kFloat);
}

void copy_bytes(const at::Tensor& to, const at::Tensor& from) {
  std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
}

}  // namespace

std::function<void()> plain_copy(const Ends& ends, int64_t bytes) {
  const auto half = static_cast<size_t>(bytes / 2);
  return [to = at::zeros({bytes}, at::kByte), mine = ends.mine, theirs = ends.theirs, half] {
    auto* first = to.mutable_data_ptr<uint8_t>();
    std::memcpy(first, mine.data(), half);
    std::memcpy(first + half, theirs.data(), half);
  };
}

std::function<void()> plain_exchange(const std::shared_ptr<FileDescriptor>& socket, int64_t bytes) {
  return [socket, out = at::zeros({bytes}, at::kByte), in = at::zeros({bytes}, at::kByte)] {
    exchange_plainly(*socket, out, in);
  };
}

std::function<void()> by_hand_in_memory(const Ends& ends, CollectiveKind kind, int64_t floats) {
  const auto rank = static_cast<size_t>(ends.rank);
  const bool scatters = kind == CollectiveKind::kReduceScatter, gathers = kind == CollectiveKind::kAllGather;
  const int64_t first = scatters ? ends.rank * floats / 2 : 0, count = scatters || gathers ? floats / 2 : floats;
  const auto mine = floats_at(ends.mine, first, count), theirs = floats_at(ends.theirs, first, count);
  auto to = at::zeros({gathers ? floats : count});
  return [meetings = ends.meetings, rank, gathers, mine, theirs, to]() mutable {
    meet(*meetings, rank);
    if (gathers) {
      copy_bytes(to.narrow(0, 0, mine.numel()), mine);
      copy_bytes(to.narrow(0, mine.numel(), mine.numel()), theirs);
    } else {
      at::add_out(to, mine, theirs);
    }
    meet(*meetings, rank);
  };
}

std::function<void()> by_hand_over(const std::shared_ptr<FileDescriptor>& socket, CollectiveKind kind, int64_t floats) {
  const bool gathers = kind == CollectiveKind::kAllGather;
  const int64_t count = kind == CollectiveKind::kAllReduce ? floats : floats / 2;
  const auto mine = at::ones({count}), in = at::zeros({count});
  auto to = at::zeros({gathers ? floats : count});
  return [socket, gathers, mine, in, to]() mutable {
    exchange_plainly(*socket, mine, gathers ? to.narrow(0, mine.numel(), mine.numel()) : in);
    if (gathers)
      copy_bytes(to.narrow(0, 0, mine.numel()), mine);
    else
      at::add_out(to, mine, in);
  };
}

}  // namespace lockstep::bench
