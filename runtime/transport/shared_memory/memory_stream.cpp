#include "runtime/transport/shared_memory/memory_stream.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "core/files/pass_descriptor.h"
#include "runtime/transport/shared_memory/shared_word.h"

namespace lockstep {
namespace {

/// So much is made known at a time: the other side copies it out while the next is copied in.
constexpr size_t kChunk = size_t{1} << 16;
constexpr const char* kBroken = "its counters in shared memory are damaged";

}  // namespace

MemoryStream::MemoryStream(FileDescriptor socket, const FileDescriptor& memory, int side, const SharedArena* arena)
    : socket_(std::move(socket)),
      memory_(memory),
      writer_(memory_->counters[side], memory_->bytes[side]),
      reader_(memory_->counters[1 - side], memory_->bytes[1 - side]),
      remote_(*memory_, side, arena),
      mine_(memory_->sides[side]),
      theirs_(memory_->sides[1 - side]) {
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  if (!arena) return;
  const std::byte bell{};
  if (send_with(socket_, std::span(&bell, 1), arena->read_only())) store(mine_.has_arena, 1U);
}

size_t MemoryStream::send(ConstSpans from) {
  size_t total = 0;
  for (const auto& span : from) {
    const size_t count = write(span);
    total += count;
    if (count < span.size()) break;
  }
  return total;
}

size_t MemoryStream::write(ConstSpan from) {
  size_t total = 0;
  while (total < from.size()) {
    const auto space = writer_.space();
    if (!space) end(kBroken);
    const size_t count = std::min({space.value_or(0), from.size() - total, kChunk});
    if (count == 0) break;
    writer_.write(from.subspan(total, count));
    total += count;
    wake_other();
  }
  return total;
}

size_t MemoryStream::receive(MutableSpans to) {
  if (remote_.is_offered_arena()) take_bells();
  remote_.try_probe();
  size_t total = 0;
  for (const auto& span : to) {
    const size_t count = read(span);
    total += count;
    if (count < span.size()) break;
  }
  return total;
}

size_t MemoryStream::read(MutableSpan to) {
  size_t total = 0;
  while (total < to.size() && !broken_) {
    const auto available = reader_.available();
    if (!available) end(kBroken);
    const size_t count = std::min({available.value_or(0), to.size() - total, kChunk});
    if (count == 0) break;
    reader_.read(to.subspan(total, count));
    total += count;
    wake_other();
  }
  return total;
}

/// That the other process was there until the end proves that it was its memory: numbers of processes are used again.
bool MemoryStream::fetch(std::span<const LentPart> from, MutableSpans to) {
  if (!remote_.fetch(from, to) || !is_connected()) return fail_to_read();
  wake_other();
  return true;
}

bool MemoryStream::settle() {
  if (!remote_.has_dropped()) return true;
  if (!remote_.settle()) return fail_to_read();
  wake_other();
  return true;
}

bool MemoryStream::fail_to_read() {
  broken_ = true;
  end("its memory cannot be read");
  return false;
}

/// Our side lets go of what it lent: the other may live, and must not take what comes to lie there.
void MemoryStream::end(const char* why) {
  remote_.withdraw();
  close(why);
}

bool MemoryStream::is_connected() const {
  char bell = 0;
  const auto count = ::recv(socket_.get(), &bell, 1, MSG_DONTWAIT | MSG_PEEK);
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

/// If the byte does not fit, others are on their way.
void MemoryStream::wake_other() {
  std::atomic_ref(mine_.core).store(::sched_getcpu(), std::memory_order_relaxed);
  const std::atomic_ref sleeps(theirs_.asleep);
  if (sleeps.load() == 0 || sleeps.exchange(0) == 0) return;
  const char bell = 0;
  ::send(socket_.get(), &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool MemoryStream::can_receive() const { return !broken_ && reader_.available().value_or(0) > 0; }
bool MemoryStream::can_send() const { return writer_.space().value_or(0) > 0; }

bool MemoryStream::shares_core() const {
  return std::atomic_ref(theirs_.core).load(std::memory_order_relaxed) == ::sched_getcpu();
}

pollfd MemoryStream::asleep(bool, bool) {
  std::atomic_ref(mine_.asleep).store(1);
  return {socket_.get(), POLLIN, 0};
}

void MemoryStream::awake(short events) {
  std::atomic_ref(mine_.asleep).store(0);
  if (events != 0) take_bells();
}

/// With the first one may come what the other's tensors can be read by.
void MemoryStream::take_bells() {
  std::array<std::byte, 64> bells;
  FileDescriptor arena;
  const auto count = receive_with(socket_, bells, arena);
  const bool nothing = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (count <= 0 && !nothing) end("it was closed by the other side");
  if (arena.is_open()) remote_.map(arena);
}

}  // namespace lockstep
