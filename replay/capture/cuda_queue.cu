#include <cuda_runtime.h>

#include <algorithm>

#include "core/digest/tensor_digest.h"
#include "core/digest/xxh3_piece.h"
#include "core/error.h"
#include "replay/capture/cuda_queue.h"

/// Eight threads take a piece: they read its stripes of 64 bytes together, each a word.
namespace lockstep::replay {
namespace {

constexpr unsigned kThreads = 256, kPiecesInBlock = kThreads / xxh3::kLanes;
constexpr std::size_t kMaxGrid = 1u << 16;  // beyond, threads take several pieces
constexpr cudaStream_t kDefaultStream = nullptr;

/// One lane in each of eight neighbouring threads, which call everything together.
class OwnLane {
 public:
  __device__ OwnLane() : lane_(threadIdx.x % xxh3::kLanes), sum_(xxh3::first_sum(lane_)) {}

  __device__ void add(const xxh3::Byte* stripe, uint32_t place) {
    const uint64_t word = xxh3::read64(stripe + 8 * lane_);
    const uint64_t neighbour = __shfl_xor_sync(members(), word, 1, xxh3::kLanes);
    sum_ = xxh3::sum_with(sum_, word, neighbour, xxh3::secret64(place + 8 * lane_));
  }
  __device__ void scramble(uint32_t place) { sum_ = xxh3::scrambled(sum_, xxh3::secret64(place + 8 * lane_)); }
  __device__ uint64_t sum(uint32_t lane) const { return __shfl_sync(members(), sum_, lane, xxh3::kLanes); }
  __device__ bool is_first() const { return lane_ == 0; }

 private:
  /// The eight, as bits of their warp's threads.
  __device__ static unsigned members() { return 0xFFu << (threadIdx.x % warpSize / xxh3::kLanes * xxh3::kLanes); }

  uint32_t lane_;
  uint64_t sum_;
};

__global__ void digest_kernel(const xxh3::Byte* bytes, std::size_t size, std::size_t pieces, Digest* digests) {
  const std::size_t step = std::size_t{gridDim.x} * kPiecesInBlock;
  const OwnLane own;
  for (std::size_t p = std::size_t{blockIdx.x} * kPiecesInBlock + threadIdx.x / xxh3::kLanes; p < pieces; p += step) {
    const std::size_t start = p * kTensorPieceBytes, rest = size - start;
    const auto length = static_cast<uint32_t>(rest < kTensorPieceBytes ? rest : kTensorPieceBytes);
    if (length > xxh3::kMostShort) {
      const Digest digest = xxh3::of_long(bytes + start, length, own);
      if (own.is_first()) digests[p] = digest;
    } else if (own.is_first()) {
      digests[p] = xxh3::of_short(bytes + start, length);
    }
  }
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail<InternalError>("recording on a GPU: {} failed: {}", what, cudaGetErrorString(status));
}

/// Memory of CUDA's; the two kinds differ in who gives it and takes it back.
template <class T, cudaError_t (*Release)(void*)>
struct Room {
  ~Room() { Release(start); }
  Room() = default;
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  void* start = nullptr;
  std::size_t size = 0;
  T* get() const { return static_cast<T*>(start); }
  void release() {
    check(Release(start), "the release of memory");
    start = nullptr;
    size = 0;
  }
};

template <class T>
void grow(Room<T, cudaFree>& room, std::size_t size) {
  if (size <= room.size) return;
  room.release();
  check(cudaMalloc(&room.start, size * sizeof(T)), "the allocation of memory on the device");
  room.size = size;
}

/// Pages that stay where they are: the device copies into them on its own.
template <class T>
void grow(Room<T, cudaFreeHost>& room, std::size_t size) {
  if (size <= room.size) return;
  room.release();
  check(cudaMallocHost(&room.start, size * sizeof(T)), "the allocation of memory for copies");
  room.size = size;
}

class CudaQueue final : public DeviceQueue {
 public:
  /// What is enqueued still writes to the memory.
  ~CudaQueue() override { cudaStreamSynchronize(kDefaultStream); }

  void make_room(std::size_t digests, std::size_t bytes) override {
    grow(device_digests_, digests);
    grow(digests_, digests);
    grow(bytes_, bytes);
  }

  void digest(std::span<const std::byte> device_bytes, std::size_t place) override {
    const auto pieces = tensor_pieces(device_bytes.size());
    const auto grid = std::min(kMaxGrid, (pieces + kPiecesInBlock - 1) / kPiecesInBlock);
    const cudaLaunchConfig_t config{.gridDim = {static_cast<unsigned>(grid)}, .blockDim = {kThreads}};
    check(cudaLaunchKernelEx(&config, digest_kernel, reinterpret_cast<const xxh3::Byte*>(device_bytes.data()),
                             device_bytes.size(), pieces, device_digests_.get() + place),
          "the launch");
  }

  void copy(std::span<const std::byte> device_bytes, std::size_t place) override {
    check(cudaMemcpyAsync(bytes_.get() + place, device_bytes.data(), device_bytes.size(), cudaMemcpyDeviceToHost,
                          kDefaultStream),
          "a copy to the host");
  }

  void wait(std::size_t digests) override {
    check(cudaMemcpyAsync(digests_.get(), device_digests_.get(), digests * sizeof(Digest), cudaMemcpyDeviceToHost,
                          kDefaultStream),
          "the copy of digests");
    check(cudaStreamSynchronize(kDefaultStream), "the device's work");
  }

  std::span<const Digest> digests() const override { return {digests_.get(), digests_.size}; }
  std::span<const std::byte> bytes() const override { return {bytes_.get(), bytes_.size}; }

 private:
  Room<Digest, cudaFree> device_digests_;
  Room<Digest, cudaFreeHost> digests_;
  Room<std::byte, cudaFreeHost> bytes_;
};

}  // namespace

std::unique_ptr<DeviceQueue> make_cuda_queue() { return std::make_unique<CudaQueue>(); }

std::string cuda_device_name() {
  int device = 0, driver = 0;
  cudaDeviceProp properties{};
  const bool is_known = cudaGetDevice(&device) == cudaSuccess && cudaDriverGetVersion(&driver) == cudaSuccess &&
                        cudaGetDeviceProperties(&properties, device) == cudaSuccess;
  return is_known ? fmt::format("{}, driver {}", properties.name, driver) : "";
}

}  // namespace lockstep::replay
