#include "runtime/transport/shared_memory/remote_memory.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "runtime/transport/shared_memory/shared_word.h"

namespace lockstep {
namespace {

uint64_t random_word() {
  uint64_t word = 0;
  LOCKSTEP_CHECK(::getrandom(&word, sizeof word, 0) == sizeof word);
  return word;
}

/// What fits into the pipe goes through it: two copies by two cores take less time than a system call that pins pages,
/// and nobody waits. What does not fit is lent, so that it travels while the sender computes.
constexpr size_t kLeastBySystem = kPipeBytes + 1;
/// Of what the other has mapped.
constexpr size_t kLeastMapped = size_t{1} << 15;

/// Whether they are as large, with no sum that overflows.
bool equally_large(std::span<const LentPart> from, MutableSpans to) {
  uint64_t left = 0;
  for (const auto& part : to) left += part.size();
  for (const auto& part : from) {
    if (part.bytes > left) return false;
    left -= part.bytes;
  }
  return left == 0;
}

}  // namespace

RemoteMemory::RemoteMemory(PairMemory& memory, int side, const SharedArena* arena)
    : memory_(memory), side_(side), arena_(arena), probe_(random_word()) {
  auto& mine = memory_.sides[side_];
  if (arena) {
    store(mine.arena_address, arena->address());
    store(mine.arena_bytes, uint64_t{arena->bytes()});
  }
  store(mine.process, int32_t{::getpid()});
  store(mine.probe_address, uint64_t{reinterpret_cast<uintptr_t>(&probe_)});
  store(mine.probe_value, probe_);
  store(mine.has_probe, 1U);
}

void RemoteMemory::withdraw() { store(memory_.sides[side_].withdrawn, 1U); }

/// A process of another namespace has another number here: whoever bears it does not hold the same random word.
void RemoteMemory::try_probe() {
  auto& other = memory_.sides[1 - side_];
  if (tried_ || load(other.has_probe) == 0) return;
  tried_ = true;
  uint64_t value = 0;
  can_fetch_ = read_by_system(load(other.probe_address), std::as_writable_bytes(std::span(&value, 1))) &&
               value == load(other.probe_value);
  store(memory_.sides[side_].can_fetch, can_fetch_ ? 1U : 0U);
}

bool RemoteMemory::is_offered_arena() const { return !tried_arena_ && load(memory_.sides[1 - side_].has_arena) != 0; }

void RemoteMemory::map(const FileDescriptor& arena) {
  const auto& other = memory_.sides[1 - side_];
  if (std::exchange(tried_arena_, true)) return;
  try {
    theirs_ = std::make_shared<MappedMemory>(arena, load(other.arena_bytes), /*writable=*/false);
  } catch (const TransportError&) {
    return;
  }
  their_address_ = load(other.arena_address);
  store(memory_.sides[side_].maps, 1U);
}

bool RemoteMemory::should_lend(ConstSpans parts) const {
  const auto& other = memory_.sides[1 - side_];
  size_t bytes = 0;
  bool mapped = arena_ && load(other.maps) != 0;
  for (const auto& part : parts) {
    bytes += part.size();
    mapped = mapped && (part.empty() || arena_->holds(part.data(), part.size()));
  }
  return mapped ? bytes >= kLeastMapped : bytes >= kLeastBySystem && load(other.can_fetch) != 0;
}

uint64_t RemoteMemory::fetched() const { return load(memory_.counters[side_].fetched); }

bool RemoteMemory::fetch(std::span<const LentPart> from, MutableSpans to) {
  if (!equally_large(from, to)) return false;
  size_t part = 0, offset = 0;  // of `from`
  for (auto rest : to)
    while (!rest.empty()) {
      const size_t count = std::min<size_t>(rest.size(), from[part].bytes - offset);
      if (count > 0 && !read(from[part].address + offset, rest.first(count))) return false;
      rest = rest.subspan(count);
      offset += count;
      if (offset < from[part].bytes) continue;
      offset = 0;
      ++part;
    }
  loans_->close(loans_->open());
  return settle();
}

std::optional<BorrowedPayload> RemoteMemory::borrow(std::span<const LentPart> from) {
  if (!theirs_) return std::nullopt;
  BorrowedPayload borrowed_bytes;
  for (const auto& part : from) {
    const auto* bytes = mapped(part.address, part.bytes);
    if (!bytes && part.bytes > 0) return std::nullopt;
    borrowed_bytes.parts.emplace_back(bytes, part.bytes);
  }
  const auto close = [book = loans_, number = loans_->open(), arena = theirs_](const void*) { book->close(number); };
  borrowed_bytes.lease = std::shared_ptr<const void>(theirs_->get(), close);
  return borrowed_bytes;
}

bool RemoteMemory::settle() {
  if (load(memory_.sides[1 - side_].withdrawn) != 0) return false;
  settled_ = loans_->closed();
  store(memory_.counters[1 - side_].fetched, settled_);
  return true;
}

const std::byte* RemoteMemory::mapped(uint64_t address, uint64_t bytes) const {
  const uint64_t offset = address - their_address_;
  if (!theirs_ || offset >= theirs_->bytes() || bytes > theirs_->bytes() - offset) return nullptr;
  return static_cast<const std::byte*>(theirs_->get()) + offset;
}

bool RemoteMemory::read(uint64_t address, MutableSpan to) const {
  const auto* bytes = mapped(address, to.size());
  if (!bytes) return can_fetch_ && read_by_system(address, to);
  std::memcpy(to.data(), bytes, to.size());
  return true;
}

bool RemoteMemory::read_by_system(uint64_t address, MutableSpan to) const {
  while (!to.empty()) {
    const iovec mine{to.data(), to.size()}, theirs{reinterpret_cast<void*>(address), to.size()};
    const auto count = ::process_vm_readv(load(memory_.sides[1 - side_].process), &mine, 1, &theirs, 1, 0);
    if (count <= 0) return false;
    address += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
  return true;
}

}  // namespace lockstep
