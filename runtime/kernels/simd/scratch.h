#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace lockstep::kernels {

/// Memory that a thread keeps for the next call: fresh pages cost more than what is computed in them. 64-byte aligned.
template <class T>
class Buffer {
 public:
  /// Contents are lost.
  T* reserve(int64_t count) {
    if (count > size_) {
      memory_.reset();
      const auto bytes = (static_cast<std::size_t>(count) * sizeof(T) + kAlignment) / kAlignment * kAlignment;
      memory_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
      if (memory_ == nullptr) throw std::bad_alloc();
      size_ = count;
    }
    return memory_.get();
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  int64_t size_ = 0;
};

/// The buffers of one thread, one per purpose. A thread that hands out work keeps kPackedRight and kSharedRight
/// while others use them.
enum class Purpose { kPackedRight, kSharedRight, kPackedLeft, kWaiting, kStack, kAttention };

template <class T, Purpose kPurpose>
Buffer<T>& scratch() {
  thread_local Buffer<T> buffer;
  return buffer;
}

}  // namespace lockstep::kernels
