#pragma once
// Stands for CUDA's header where the host runs Lockstep's kernels, one thread of a block after the other, each until it
// has to wait for others. Device memory is testing::GpuMemory. Of C++, CUDA and the instructions that kernels use, no
// more than they do use.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "tests/support/gpu/coroutine.h"
#include "tests/support/gpu/gpu_memory.h"
#include "tests/support/gpu/pretended_streams.h"

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)
#define __global__
#define __device__
#define __shared__ static  // blocks run one after the other

struct EmulatedIndex {
  unsigned x = 0;
};
inline EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;
constexpr unsigned warpSize = 32;

inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>((static_cast<Wide>(a) * b) >> 64);
}

// What these functions are on a GPU.
#define __CUDA_ARCH__ 900
#include "core/digest/xxh3_words.h"
#include "core/elementary/portable.h"
#undef __CUDA_ARCH__

namespace lockstep::testing {

/// The threads of a block, each on a stack of its own, which the next block's take over.
class EmulatedBlock {
 public:
  EmulatedBlock(unsigned threads, const std::function<void()>& kernel) : kernel_(kernel), threads_(threads) {
    if (stacks_.size() < threads) stacks_.resize(threads);
  }

  /// All of them, in turns, to their end.
  void run() {
    current_ = this;
    for (auto& thread : threads_) thread = {};
    size_t ended = 0;
    while (ended < threads_.size()) {
      const auto before = progress_;
      ended = 0;
      for (unsigned t = 0; t < threads_.size(); ++t) ended += turn(t) ? 1 : 0;
      LOCKSTEP_CHECK(ended == threads_.size() || progress_ != before,
                     "threads of a block wait for others that do not come");
    }
  }

  /// As run(), where no thread waits for another.
  void run_without_waiting() {
    current_ = this;
    is_direct_ = true;
    for (threadIdx.x = 0; threadIdx.x < threads_.size(); ++threadIdx.x) kernel_();
    is_direct_ = false;
  }

  bool has_waited() const { return has_waited_; }

  static EmulatedBlock& current() { return *current_; }

  /// What the thread `source`, which is one of `members` of this one's warp, gives; all of them are there then.
  uint64_t exchange(unsigned members, uint64_t value, unsigned source) {
    LOCKSTEP_CHECK(!is_direct_, "threads of a later block wait for each other, those of the first did not");
    has_waited_ = true;
    LOCKSTEP_CHECK(members >> threadIdx.x % warpSize & 1, "a thread that is not one of its members");
    threads_[threadIdx.x].given = value;
    meet(members);
    const unsigned warp = threadIdx.x / warpSize * warpSize;
    LOCKSTEP_CHECK(members >> (source - warp) & 1, "from a thread that is not one of the members");
    const uint64_t result = threads_[source].given;
    meet(members);  // nobody gives anew before all have taken
    return result;
  }

  /// Waits until all members have come to as many of these, or exchanges.
  void synchronize_warp(unsigned members) {
    LOCKSTEP_CHECK(!is_direct_, "threads of a later block wait for each other, those of the first did not");
    has_waited_ = true;
    meet(members);
  }

  /// Waits until all threads of the block have come to as many of these; one that has ended never comes.
  void synchronize() {
    LOCKSTEP_CHECK(!is_direct_, "threads of a later block wait for each other, those of the first did not");
    has_waited_ = true;
    const unsigned own = threadIdx.x;
    const int barrier = ++threads_[own].barriers;
    ++progress_;
    while (std::ranges::any_of(threads_, [&](const Thread& thread) { return thread.barriers < barrier; })) {
      Coroutine::pause();
      threadIdx.x = own;
    }
  }

 private:
  struct Thread {
    uint64_t given = 0;
    int meetings = 0, barriers = 0;  ///< that it has come to
    bool has_ended = false;
  };

  bool turn(unsigned t) {
    if (threads_[t].has_ended) return true;
    threadIdx.x = t;
    threads_[t].has_ended = stacks_[t].resume(kernel_);
    progress_ += threads_[t].has_ended ? 1 : 0;
    return threads_[t].has_ended;
  }

  /// Waits until all members have come to as many meetings.
  void meet(unsigned members) {
    const unsigned own = threadIdx.x, warp = own / warpSize * warpSize;
    const int meeting = ++threads_[own].meetings;
    ++progress_;
    const auto is_missing = [&] {
      for (unsigned lane = 0; lane < warpSize; ++lane)
        if ((members >> lane & 1) && threads_.at(warp + lane).meetings < meeting) return true;
      return false;
    };
    while (is_missing()) {
      Coroutine::pause();
      threadIdx.x = own;
    }
  }

  static inline EmulatedBlock* current_ = nullptr;
  const std::function<void()>& kernel_;
  static inline std::deque<Coroutine> stacks_;  ///< which stay where they are
  std::vector<Thread> threads_;
  uint64_t progress_ = 0;
  bool has_waited_ = false, is_direct_ = false;
};

template <class Argument>
void open_memory(Opened& opened, const Argument& argument) {
  if constexpr (std::is_pointer_v<Argument>) opened.add(argument);
  if constexpr (requires { argument.memory(); })
    for (const void* start : argument.memory()) opened.add(start);
}

}  // namespace lockstep::testing

inline void __syncwarp(unsigned members) { lockstep::testing::EmulatedBlock::current().synchronize_warp(members); }
inline void __syncthreads() { lockstep::testing::EmulatedBlock::current().synchronize(); }

inline uint64_t __shfl_sync(unsigned members, uint64_t value, int lane, int width) {
  const auto first = threadIdx.x / static_cast<unsigned>(width) * static_cast<unsigned>(width);
  return lockstep::testing::EmulatedBlock::current().exchange(members, value, first + static_cast<unsigned>(lane));
}

inline uint64_t __shfl_xor_sync(unsigned members, uint64_t value, int bits, int /*width*/) {
  return lockstep::testing::EmulatedBlock::current().exchange(members, value,
                                                              threadIdx.x ^ static_cast<unsigned>(bits));
}

inline float __shfl_xor_sync(unsigned members, float value, int bits, int width) {
  const uint64_t given = lockstep::portable::bits<uint32_t>(value);
  return lockstep::portable::bits<float>(static_cast<uint32_t>(__shfl_xor_sync(members, given, bits, width)));
}

inline double __shfl_xor_sync(unsigned members, double value, int bits, int width) {
  return lockstep::portable::bits<double>(
      __shfl_xor_sync(members, lockstep::portable::bits<uint64_t>(value), bits, width));
}

using cudaStream_t = void*;
enum cudaError_t { cudaSuccess };
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
struct dim3 {
  unsigned x;
};
struct cudaLaunchConfig_t {
  dim3 gridDim = {}, blockDim = {};
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
struct cudaDeviceProp {
  char name[32];
};

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...), Arguments&&... given) {
  lockstep::testing::PretendedStreams::instance().work();
  lockstep::testing::Opened opened;
  (lockstep::testing::open_memory(opened, given), ...);
  gridDim.x = config->gridDim.x;
  blockDim.x = config->blockDim.x;
  const std::function<void()> call = [&] { kernel(given...); };
  lockstep::testing::EmulatedBlock block(blockDim.x, call);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x)
    blockIdx.x > 0 && !block.has_waited() ? block.run_without_waiting() : block.run();
  return cudaSuccess;
}

template <class T>
cudaError_t cudaMalloc(T** start, size_t bytes) {
  *start = lockstep::testing::GpuMemory::instance().allocate(bytes);
  return cudaSuccess;
}

inline cudaError_t cudaFree(void* start) {
  if (start) lockstep::testing::GpuMemory::instance().free(start);
  return cudaSuccess;
}

template <class T>
cudaError_t cudaMallocHost(T** start, size_t bytes) {
  *start = std::malloc(bytes);
  return cudaSuccess;
}

inline cudaError_t cudaFreeHost(void* start) {
  std::free(start);
  return cudaSuccess;
}

inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const lockstep::testing::Opened opened(kind == cudaMemcpyHostToDevice ? to : from);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int*) { return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int*) { return cudaSuccess; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::strcpy(properties->name, "a pretended one");
  return cudaSuccess;
}
inline const char* cudaGetErrorString(cudaError_t) { return "no error"; }
// NOLINTEND(readability-identifier-naming)
