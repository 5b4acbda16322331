#include <cuda_runtime.h>

#include <algorithm>

#include "core/error.h"
#include "rng/cuda_fill.h"
#include "rng/resolve.h"
#include "rng/runs.h"

/// One thread per Philox block of a run; a block that reaches over the ends of its run is drawn whole and stored in
/// part, one that lies within it in memory is stored at once.
namespace lockstep::rng {
namespace {

constexpr int kMaxLoops = 8;
constexpr unsigned kThreads = 256;
constexpr uint64_t kMaxGrid = 1u << 16;  // beyond, threads take several blocks

/// The runs of a subarray on their way to the device.
struct DeviceRuns {
  Run first;
  int loops;
  Runs::Loop loop[kMaxLoops];  ///< outermost first
  uint64_t count;
};

DeviceRuns device_runs(const Subarray& subarray) {
  const Runs described(subarray);
  DeviceRuns runs{described.first(), static_cast<int>(described.loops().size()), {}, 1};
  if (runs.loops > kMaxLoops) {
    fail<BadInput>("random numbers on a GPU: a subarray that needs {} loops, at most {}", runs.loops, kMaxLoops);
  }
  std::copy(described.loops().begin(), described.loops().end(), runs.loop);
  for (int i = 0; i < runs.loops; ++i) runs.count *= static_cast<uint64_t>(runs.loop[i].length);
  return runs;
}

/// Run number `position` of them.
__device__ Run run_at(const DeviceRuns& runs, uint64_t position) {
  Run run = runs.first;
  for (int i = runs.loops - 1; i >= 0; --i) {
    const auto length = static_cast<uint64_t>(runs.loop[i].length), turn = position % length;
    position /= length;
    run.index += turn * runs.loop[i].index_stride;
    run.offset += static_cast<int64_t>(turn) * runs.loop[i].stride;
  }
  return run;
}

template <class Draw, class Store>
struct alignas(sizeof(typename Store::Stored) * Draw::kPerBlock) StoredBlock {
  typename Store::Stored at[Draw::kPerBlock];
};

/// The values of `block`, as far as they are the run's.
template <class Draw, class Store>
__device__ void store_block(const typename Draw::Value* v, const Run& run, uint64_t block,
                            typename Store::Stored* out) {
  using Whole = StoredBlock<Draw, Store>;
  const auto first = static_cast<int64_t>(block * Draw::kPerBlock - run.index);
  auto* start = out + run.offset + first * run.stride;
  const bool is_within = first >= 0 && first + Draw::kPerBlock <= run.count && run.stride == 1;
  if (is_within && reinterpret_cast<uintptr_t>(start) % alignof(Whole) == 0) {
    Whole whole;
    for (int j = 0; j < Draw::kPerBlock; ++j) whole.at[j] = Store::store(v[j]);
    *static_cast<Whole*>(__builtin_assume_aligned(start, alignof(Whole))) = whole;
    return;
  }
  for (int j = 0; j < Draw::kPerBlock; ++j)
    if (first + j >= 0 && first + j < run.count) start[j * run.stride] = Store::store(v[j]);
}

template <class Draw, class Store>
__global__ void fill_kernel(Draw draw, Key key, uint64_t stream, DeviceRuns runs, uint64_t blocks_per_run,
                            typename Store::Stored* out) {
  const uint64_t total = runs.count * blocks_per_run, step = uint64_t{gridDim.x} * blockDim.x;
  const bool is_one = runs.count == 1;  // without a division, which costs as much as a draw
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step) {
    const Run run = is_one ? runs.first : run_at(runs, i / blocks_per_run);
    const uint64_t block = run.index / Draw::kPerBlock + (is_one ? i : i % blocks_per_run);
    typename Draw::Value v[Draw::kPerBlock];
    draw(words(key, {block, stream}), v);
    store_block<Draw, Store>(v, run, block, out);
  }
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    fail<InternalError>("random numbers on a GPU: {} failed: {}", what, cudaGetErrorString(status));
  }
}

template <class Draw, class Store>
void launch(const Draw& draw, Key key, uint64_t stream, const DeviceRuns& runs, typename Store::Stored* out,
            cudaStream_t cuda_stream) {
  // However the run lies on the grid of blocks: n elements touch at most 1 + ceil((n - 1) / kPerBlock) of them.
  const uint64_t blocks_per_run = 1 + (static_cast<uint64_t>(runs.first.count) + Draw::kPerBlock - 2) / Draw::kPerBlock;
  const uint64_t grid = std::min(kMaxGrid, (runs.count * blocks_per_run + kThreads - 1) / kThreads);
  const cudaLaunchConfig_t config{
      .gridDim = {static_cast<unsigned>(grid)}, .blockDim = {kThreads}, .stream = cuda_stream};
  check(cudaLaunchKernelEx(&config, fill_kernel<Draw, Store>, draw, key, stream, runs, blocks_per_run, out),
        "the launch");
}

}  // namespace

std::string cuda_unavailable_reason() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess) return cudaGetErrorString(status);
  return devices > 0 ? "" : "no CUDA device";
}

void cuda_fill(void* device_out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
               const Subarray& subarray, void* cuda_stream) {
  subarray.check();
  visit_draw(kind, distribution, [&]<class Draw, class Store>(const Draw& draw, Store) {
    if (subarray.elements() == 0) return;
    launch<Draw, Store>(draw, key, stream, device_runs(subarray), static_cast<typename Store::Stored*>(device_out),
                        static_cast<cudaStream_t>(cuda_stream));
  });
}

void cuda_fill_host(void* host_out, std::size_t bytes, ScalarKind kind, const Distribution& distribution, Key key,
                    uint64_t stream, const Subarray& subarray) {
  void* device = nullptr;
  check(cudaMalloc(&device, std::max<std::size_t>(bytes, 1)), "the allocation");
  check(cudaMemcpy(device, host_out, bytes, cudaMemcpyHostToDevice), "the copy to the device");
  cuda_fill(device, kind, distribution, key, stream, subarray, nullptr);
  check(cudaMemcpy(host_out, device, bytes, cudaMemcpyDeviceToHost), "the copy from the device");
  check(cudaFree(device), "the release");
}

}  // namespace lockstep::rng
