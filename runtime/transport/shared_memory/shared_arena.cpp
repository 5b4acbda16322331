#include "runtime/transport/shared_memory/shared_arena.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "core/error.h"

namespace lockstep {
namespace {

/// Blocks of 2^n bytes would all begin at the same place of a page, and so share cache sets.
constexpr size_t kApart = 5 * 64;

uint64_t block_bytes(size_t bytes) { return (bytes + 63) / 64 * 64 + kApart; }

}  // namespace

std::unique_ptr<SharedArena> SharedArena::create(size_t bytes) {
  auto memory = create_sealed_memory(bytes);
  if (!memory.is_open()) return nullptr;
  try {
    return std::unique_ptr<SharedArena>(new SharedArena(std::move(memory), bytes));
  } catch (const TransportError&) {
    return nullptr;  // no room for the mapping
  }
}

SharedArena::SharedArena(FileDescriptor memory, size_t bytes)
    : memory_(std::move(memory)), mapped_(memory_, bytes), free_(bytes) {}

/// Nothing else may come to lie there either: holds() stays true.
void SharedArena::disown() {
  is_ours_ = false;
  constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(mapped_.get(), mapped_.bytes(), PROT_NONE, kNothing, -1, 0) == MAP_FAILED) std::abort();
}

void* SharedArena::allocate(size_t bytes) {
  if (!is_ours_) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto start = free_.take(block_bytes(bytes));
  if (!start) return nullptr;
  taken_.emplace(*start, block_bytes(bytes));
  return static_cast<std::byte*>(mapped_.get()) + *start;
}

void SharedArena::release(void* block) {
  if (!is_ours_) return;
  const auto start = reinterpret_cast<uintptr_t>(block) - address();
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.extract(start);
  LOCKSTEP_CHECK(taken, "a block that is not taken is released");
  if (taken.mapped() >= kReturned)
    ::fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(start),
                static_cast<off_t>(taken.mapped()));
  free_.give(start, taken.mapped());
}

bool SharedArena::holds(const void* start, size_t bytes) const {
  const auto offset = reinterpret_cast<uintptr_t>(start) - address();
  return offset < mapped_.bytes() && bytes <= mapped_.bytes() - offset;
}

FileDescriptor SharedArena::read_only() const {
  const auto path = "/proc/self/fd/" + std::to_string(memory_.get());
  return FileDescriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace lockstep
