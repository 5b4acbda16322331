#include "runtime/transport/streams/shared_tensors.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <pthread.h>

#include "core/files/proc_value.h"

namespace lockstep {
namespace {

/// Hands out blocks of an arena, and where that has no room what the allocator before it gives.
class SharedTensors final : public c10::Allocator {
 public:
  SharedTensors(SharedArena& arena, c10::Allocator& fallback) {
    arena_ = &arena;
    fallback_ = &fallback;
  }

  c10::DataPtr allocate(size_t bytes) override {
    void* block = bytes < kLeastSharedBytes ? nullptr : arena_->allocate(bytes);
    if (!block) block = fallback_->raw_allocate(bytes);
    return {block, block, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }

  static void disown() { arena_->disown(); }

 private:
  static void release(void* block) {
    if (arena_->holds(block))
      arena_->release(block);
    else
      fallback_->raw_deallocate(block);
  }

  static inline SharedArena* arena_ = nullptr;
  static inline c10::Allocator* fallback_ = nullptr;
};

/// Never freed: tensors may live until the very end.
SharedArena* start() {
  constexpr uint8_t kAboveDefault = 1;
  auto& before = *c10::GetCPUAllocator();
  auto* arena = before.raw_deleter() ? SharedArena::create(static_cast<size_t>(memory_bytes())).release() : nullptr;
  if (!arena) return nullptr;
  c10::SetCPUAllocator(new SharedTensors(*arena, before), kAboveDefault);
  ::pthread_atfork(nullptr, nullptr, &SharedTensors::disown);
  return arena;
}

}  // namespace

const SharedArena* share_tensors() {
  static const SharedArena* const arena = start();
  return arena && arena->is_ours() ? arena : nullptr;
}

}  // namespace lockstep
