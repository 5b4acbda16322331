#include "runtime/transport/remote_memory.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/transport/shared_word.h"

namespace lockstep {
namespace {

uint64_t random_word() {
  uint64_t word = 0;
  LOCKSTEP_CHECK(::getrandom(&word, sizeof word, 0) == sizeof word);
  return word;
}

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

RemoteMemory::RemoteMemory(PairMemory& memory, int side) : memory_(memory), side_(side), probe_(random_word()) {
  auto& mine = memory_.sides[side_];
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
  can_fetch_ =
      read(load(other.probe_address), std::as_writable_bytes(std::span(&value, 1))) && value == load(other.probe_value);
  store(memory_.sides[side_].can_fetch, can_fetch_ ? 1U : 0U);
}

bool RemoteMemory::can_lend() const { return load(memory_.sides[1 - side_].can_fetch) != 0; }

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
  if (load(memory_.sides[1 - side_].withdrawn) != 0) return false;
  store(memory_.counters[1 - side_].fetched, ++fetched_);
  return true;
}

bool RemoteMemory::read(uint64_t address, MutableSpan to) const {
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
