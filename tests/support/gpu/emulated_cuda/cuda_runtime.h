#pragma once
// Stands for CUDA's header where the host runs Lockstep's kernels, one thread of a block after the other, each until it
// has to wait for others. Device memory is testing::GpuMemory. Of C++, CUDA and the instructions that kernels use, no
// more than they do use.
#include <ucontext.h>

#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "tests/support/gpu/gpu_memory.h"

// The names are CUDA's.
// NOLINTBEGIN(readability-identifier-naming)
#define __global__
#define __device__

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

/// The threads of a block, each on a stack of its own.
class EmulatedBlock {
 public:
  EmulatedBlock(unsigned threads, const std::function<void()>& kernel) : kernel_(kernel), threads_(threads) {
    for (auto& thread : threads_) thread.stack.resize(kStack);
  }

  /// All of them, in turns, to their end.
  void run() {
    current_ = this;
    unsigned ended = 0;
    for (unsigned t = 0; t < threads_.size(); ++t) start(t);
    while (ended < threads_.size()) {
      const auto before = progress_;
      ended = 0;
      for (unsigned t = 0; t < threads_.size(); ++t) ended += turn(t);
      LOCKSTEP_CHECK(ended == threads_.size() || progress_ != before,
                     "threads of a block wait for others that do not come");
    }
  }

  static EmulatedBlock& current() { return *current_; }

  /// What the thread `source`, which is one of `members` of this one's warp, gives; all of them are there then.
  uint64_t exchange(unsigned members, uint64_t value, unsigned source) {
    LOCKSTEP_CHECK(members >> threadIdx.x % warpSize & 1, "a thread that is not one of its members");
    threads_[threadIdx.x].given = value;
    meet(members);
    const unsigned warp = threadIdx.x / warpSize * warpSize;
    LOCKSTEP_CHECK(members >> (source - warp) & 1, "from a thread that is not one of the members");
    const uint64_t result = threads_[source].given;
    meet(members);  // nobody gives anew before all have taken
    return result;
  }

 private:
  static constexpr size_t kStack = 32 << 10;
  struct Thread {
    ucontext_t context;
    std::vector<char> stack;
    uint64_t given = 0;
    int meetings = 0;  ///< that it has come to
    bool has_ended = false;
  };

  static void enter() {
    auto& block = current();
    const unsigned t = threadIdx.x;
    block.kernel_();
    block.threads_[t].has_ended = true;
    ++block.progress_;
  }

  void start(unsigned t) {
    auto& thread = threads_[t];
    thread.has_ended = false;
    thread.meetings = 0;
    ::getcontext(&thread.context);
    thread.context.uc_stack = {thread.stack.data(), 0, kStack};
    thread.context.uc_link = &host_;
    ::makecontext(&thread.context, &enter, 0);
  }

  bool turn(unsigned t) {
    if (threads_[t].has_ended) return true;
    threadIdx.x = t;
    ::swapcontext(&host_, &threads_[t].context);
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
      ::swapcontext(&threads_[own].context, &host_);
      threadIdx.x = own;
    }
  }

  static inline EmulatedBlock* current_ = nullptr;
  const std::function<void()>& kernel_;
  std::vector<Thread> threads_;
  ucontext_t host_{};
  uint64_t progress_ = 0;
};

template <class Argument>
void open_memory(Opened& opened, const Argument& argument) {
  if constexpr (std::is_pointer_v<Argument>) opened.add(argument);
}

}  // namespace lockstep::testing

inline uint64_t __shfl_sync(unsigned members, uint64_t value, int lane, int width) {
  const auto first = threadIdx.x / static_cast<unsigned>(width) * static_cast<unsigned>(width);
  return lockstep::testing::EmulatedBlock::current().exchange(members, value, first + static_cast<unsigned>(lane));
}

inline uint64_t __shfl_xor_sync(unsigned members, uint64_t value, int bits, int /*width*/) {
  return lockstep::testing::EmulatedBlock::current().exchange(members, value,
                                                              threadIdx.x ^ static_cast<unsigned>(bits));
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
  lockstep::testing::Opened opened;
  (lockstep::testing::open_memory(opened, given), ...);
  gridDim.x = config->gridDim.x;
  blockDim.x = config->blockDim.x;
  const std::function<void()> call = [&] { kernel(given...); };
  lockstep::testing::EmulatedBlock block(blockDim.x, call);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) block.run();
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
