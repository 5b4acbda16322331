#pragma once
#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/error.h"

namespace lockstep::testing {

/// The memory of a GPU that the host plays. Blocks are whole pages, which nobody may touch but while something of the
/// GPU's works on them.
class GpuMemory {
 public:
  static GpuMemory& instance() {
    static auto* memory = new GpuMemory;  // outlives every tensor
    return *memory;
  }

  void* allocate(size_t bytes) {
    const size_t size = (bytes + kPage) / kPage * kPage;
    const std::lock_guard lock(mutex_);
    auto& spare = spare_[size];
    if (spare.empty()) spare.push_back(::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    auto* start = spare.back();
    LOCKSTEP_CHECK(start != MAP_FAILED);
    spare.pop_back();
    blocks_[address(start)] = {size, 0};
    return start;
  }

  /// To be used again: what the system gives anew it clears first.
  void free(void* start) {
    const std::lock_guard lock(mutex_);
    const auto block = blocks_.extract(address(start));
    if (block.mapped().users > 0) ::mprotect(start, block.mapped().size, PROT_NONE);
    spare_[block.mapped().size].push_back(start);
  }

  /// The block around an address is open from here on, until as many close() as open(). Other memory is left alone.
  void open(const void* inside) { change(inside, 1); }
  void close(const void* inside) { change(inside, -1); }

 private:
  static constexpr size_t kPage = 4096;
  struct Block {
    size_t size;
    int users;
  };

  static uintptr_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

  void change(const void* inside, int by) {
    const std::lock_guard lock(mutex_);
    auto after = blocks_.upper_bound(address(inside));
    if (after == blocks_.begin()) return;
    auto& [start, block] = *--after;
    if (address(inside) >= start + block.size) return;
    block.users += by;
    ::mprotect(reinterpret_cast<void*>(start), block.size, block.users > 0 ? PROT_READ | PROT_WRITE : PROT_NONE);
  }

  std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;
  std::map<size_t, std::vector<void*>> spare_;  ///< by their size
};

/// Blocks that are open for as long as this lives.
class Opened {
 public:
  Opened() = default;
  explicit Opened(const void* inside) { add(inside); }
  ~Opened() {
    for (const auto* inside : all_) GpuMemory::instance().close(inside);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  void add(const void* inside) {
    GpuMemory::instance().open(inside);
    all_.push_back(inside);
  }

 private:
  std::vector<const void*> all_;
};

}  // namespace lockstep::testing
