#include "tools/bench/gpu/gpu_rows.h"

#include <ATen/Functions.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "core/digest/tensor_digest.h"
#include "core/error.h"
#include "replay/capture/cuda_queue.h"
#include "runtime/context/gpu.h"
#include "runtime/context/random.h"
#include "runtime/plain/tensor_bytes.h"
#include "tools/bench/gpu/gpu_op_rows.h"

namespace lockstep::bench {
namespace {

constexpr struct Size {
  const char* name;
  int64_t bytes;
} kSizes[] = {{"1MiB", 1 << 20}, {"1GiB", 1 << 30}};
constexpr const char* kOps = "ops";

at::Tensor room(const Size& size, c10::ScalarType dtype) {
  return at::empty({size.bytes / static_cast<int64_t>(c10::elementSize(dtype))}, at::dtype(dtype).device(c10::kCUDA));
}

/// Each call draws other numbers.
std::function<void()> fill_of(const at::Tensor& out, const rng::Distribution& distribution) {
  return [out, distribution, stream = uint64_t{0}]() mutable {
    fill_random(out, distribution, 1, ++stream, rng::Subarray::whole({out.numel()}));
  };
}

void add_fills(std::vector<GpuCase>& cases, const Size& size) {
  for (const auto dtype : {c10::kFloat, c10::kBFloat16}) {
    const auto out = room(size, dtype);
    const std::string end = fmt::format("_{}_{}", dtype == c10::kFloat ? "fp32" : "bf16", size.name);
    const auto uniform = fill_of(out, rng::uniform()), normal = fill_of(out, rng::normal());
    cases.push_back({"uniform" + end, uniform, "at::rand", [out] { out.uniform_(); }});
    cases.push_back({"uniform_memory" + end, uniform, "fill", [out] { out.fill_(1); }});
    cases.push_back({"normal" + end, normal, "at::randn", [out] { out.normal_(); }});
    cases.push_back({"normal_memory" + end, normal, "fill", [out] { out.fill_(1); }});
  }
}

void add_digest(std::vector<GpuCase>& cases, const Size& size) {
  const auto from = room(size, c10::kByte), to = room(size, c10::kByte);
  const std::shared_ptr<replay::DeviceQueue> queue = replay::make_cuda_queue();
  queue->make_room(tensor_pieces(static_cast<size_t>(size.bytes)), 0);
  cases.push_back({fmt::format("digest_{}", size.name), [=] { queue->digest(bytes_of(from), 0); }, "copy",
                   [=] { to.copy_(from); }});
}

BenchRow measured(const GpuCase& each) {
  const auto* gpu = c10::impl::getDeviceGuardImpl(c10::kCUDA);
  const auto done = [gpu](const std::function<void()>& work) {
    return [gpu, work] {
      work();
      gpu->synchronizeDevice(gpu->getDevice().index());
    };
  };
  return make_row(each.name, time_in_pairs(done(each.ours), done(each.peer)), each.peer_name, "us", 1e6);
}

}  // namespace

void measure_gpu(const std::string& patterns, const std::function<void(const BenchRow&)>& report) {
  require_fit("gpu", {kSizes[0].name, kSizes[1].name, kOps}, patterns);
  require_gpu(0);
  for (const auto& size : kSizes) {
    if (!fits(size.name, patterns)) continue;
    std::vector<GpuCase> cases;
    add_fills(cases, size);
    add_digest(cases, size);
    for (const auto& each : cases) report(measured(each));
  }
  if (!fits(kOps, patterns)) return;
  for (const auto& each : gpu_op_cases()) report(measured(each));
}

}  // namespace lockstep::bench
