#pragma once
#include <c10/core/Allocator.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <set>

namespace lockstep::testing {

/// Whose memory a GPU can read by itself.
class PinnedMemory final : public c10::Allocator {
 public:
  static PinnedMemory& instance() {
    static auto* memory = new PinnedMemory;
    return *memory;
  }

  c10::DataPtr allocate(size_t bytes) override {
    auto* start = std::malloc(std::max<size_t>(bytes, 1));
    const std::lock_guard lock(mutex_);
    blocks_.insert(start);
    return {start, start, [](void* gone) { instance().free(gone); }, c10::kCPU};
  }

  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  bool has(const void* start) {
    const std::lock_guard lock(mutex_);
    return blocks_.contains(start);
  }

 private:
  void free(void* start) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(start);
    std::free(start);
  }

  std::mutex mutex_;
  std::set<const void*> blocks_;
};

}  // namespace lockstep::testing
