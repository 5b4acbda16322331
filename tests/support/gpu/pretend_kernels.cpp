// What Lockstep's kernels that draw and take digests do, on the memory of a pretended GPU, by the functions for CPUs:
// fast enough for programs.
#include "replay/capture/cuda_queue.h"
#include "rng/cuda_fill.h"
#include "rng/fill.h"
#include "tests/support/gpu/gpu_memory.h"
#include "tests/support/host_queue.h"

namespace lockstep {

using testing::Opened;

namespace replay {
namespace {

class PretendQueue final : public DeviceQueue {
 public:
  void make_room(std::size_t digests, std::size_t bytes) override { queue_.make_room(digests, bytes); }
  void digest(std::span<const std::byte> bytes, std::size_t place) override {
    const Opened opened(bytes.data());
    queue_.digest(bytes, place);
  }
  void copy(std::span<const std::byte> bytes, std::size_t place) override {
    const Opened opened(bytes.data());
    queue_.copy(bytes, place);
  }
  void wait(std::size_t digests) override { queue_.wait(digests); }
  std::span<const Digest> digests() const override { return queue_.digests(); }
  std::span<const std::byte> bytes() const override { return queue_.bytes(); }

 private:
  int waits_ = 0;
  testing::HostQueue queue_{waits_};
};

}  // namespace

std::unique_ptr<DeviceQueue> make_cuda_queue() { return std::make_unique<PretendQueue>(); }
std::string cuda_device_name() { return "a pretended one"; }

}  // namespace replay

namespace rng {

std::string cuda_unavailable_reason() { return ""; }

void cuda_fill(void* device_out, ScalarKind kind, const Distribution& distribution, Key key, uint64_t stream,
               const Subarray& subarray, void*) {
  const Opened opened(device_out);
  fill(device_out, kind, distribution, key, stream, subarray);
}

void cuda_fill_host(void* host_out, std::size_t, ScalarKind kind, const Distribution& distribution, Key key,
                    uint64_t stream, const Subarray& subarray) {
  fill(host_out, kind, distribution, key, stream, subarray);
}

}  // namespace rng

}  // namespace lockstep
