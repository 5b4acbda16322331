// A GPU played by host memory, for tests where there is none: linked in front of the libraries it stands for LibTorch's
// part for CUDA. LibTorch's CUDA tensors live in pages that nobody may touch but its ops, which run on the CPU's
// kernels; so what mixes memory of both kinds in an op, or looks into a GPU's from the host, ends the test as it would
// there.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <set>

#include "core/error.h"
#include "runtime/context/gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "tests/support/gpu/gpu_memory.h"
#include "tests/support/gpu/host_waits.h"
#include "tests/support/gpu/pinned_memory.h"
#include "tests/support/gpu/pretended_streams.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::GpuMemory, testing::HostWaits, testing::Opened, testing::PinnedMemory, testing::PretendedStreams;

const c10::Device kGpu(c10::kCUDA, 0);
/// A tensor of the CPU's on the same memory. An op may give an empty one another size.
Tensor host_view(const Tensor& tensor, Opened& opened) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  if (tensor.numel() == 0)
    return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(c10::kCPU));
  opened.add(tensor.storage().data());
  return at::from_blob(
      tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), [tensor](void*) {},
      tensor.options().device(c10::kCPU));
}

/// A copy of the CPU's tensor in the GPU's memory, strides and all.
Tensor on_gpu(const Tensor& tensor) {
  const size_t bytes = at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize());
  auto* start = GpuMemory::instance().allocate(bytes);
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes,
                       {start, start, [](void* gone) { GpuMemory::instance().free(gone); }, kGpu});
  if (bytes > 0) {
    const Opened opened(storage.data());
    std::memcpy(storage.mutable_data(), tensor.const_data_ptr(), bytes);
  }
  auto result = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                         c10::DispatchKeySet(c10::DispatchKey::CUDA), tensor.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides());
  return result;
}

/// One op's arguments on their way to the CPU's kernel, and its results on their way back.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, torch::jit::Stack& stack) : op_(op), stack_(stack) {}

  void run() {
    const size_t first = stack_.size() - op_.schema().arguments().size();
    for (size_t i = first; i < stack_.size(); ++i) stack_[i] = moved(stack_[i]);
    LOCKSTEP_CHECK(!(has_gpu_ && has_cpu_), "{}: tensors of the CPU and of the GPU", op_.schema().name());
    op_.callBoxed(stack_);
    for (const auto& [view, tensor] : views_)
      if (view.sizes() != tensor.sizes()) take_over(tensor, on_gpu(view));
    for (size_t i = stack_.size() - op_.schema().returns().size(); i < stack_.size(); ++i)
      stack_[i] = moved_back(stack_[i]);
  }

 private:
  c10::IValue moved(const c10::IValue& value) {
    if (value.isTensor()) return moved(value.toTensor());
    if (value.isDevice()) return c10::Device(c10::kCPU);
    if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& each : value.toTensorVector()) list.push_back(moved(each));
      return list;
    }
    if (!value.isOptionalTensorList()) return value;
    c10::List<std::optional<Tensor>> list;
    for (const std::optional<Tensor>& each : value.toOptionalTensorVector())
      list.push_back(each ? std::optional(moved(*each)) : std::nullopt);
    return list;
  }

  Tensor moved(const Tensor& tensor) {
    if (!tensor.defined()) return tensor;
    // A GPU takes a single number from the host.
    (tensor.is_cuda() ? has_gpu_ : has_cpu_) |= tensor.is_cuda() || tensor.dim() > 0;
    views_.emplace_back(host_view(tensor, opened_), tensor);
    return views_.back().first;
  }

  c10::IValue moved_back(const c10::IValue& value) {
    if (value.isTensor()) return moved_back(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<Tensor> list;
    for (const Tensor& each : value.toTensorVector()) list.push_back(moved_back(each));
    return list;
  }

  Tensor moved_back(const Tensor& result) {
    if (!result.defined()) return result;
    for (const auto& [view, tensor] : views_) {
      if (view.is_same(result)) return tensor;
      LOCKSTEP_CHECK(view.numel() == 0 || !view.is_alias_of(result), "{}: a view", op_.schema().name());
    }
    return on_gpu(result);
  }

  static void take_over(const Tensor& tensor, const Tensor& result) {
    auto* to = tensor.unsafeGetTensorImpl();
    to->set_storage_keep_dtype(result.storage());
    to->set_sizes_and_strides(result.sizes(), result.strides());
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack& stack_;
  Opened opened_;
  std::vector<std::pair<Tensor, Tensor>> views_;
  bool has_gpu_ = false, has_cpu_ = false;
};

/// Ops whose result's size, or a decision of the host, depends on what a GPU computed.
bool waits(const c10::OperatorHandle& op) {
  static const std::set<std::string_view> all{
      "aten::_local_scalar_dense", "aten::equal",    "aten::nonzero",
      "aten::masked_select",       "aten::_unique2", "aten::unique_consecutive"};
  return all.contains(op.schema().name());
}

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const bool only_allocates = op.schema().name() == "aten::empty";
  LOCKSTEP_CHECK(PretendedStreams::current() == 0 || only_allocates, "{} on another stream", op.schema().name());
  if (!only_allocates) PretendedStreams::instance().work();
  if (waits(op)) HostWaits::instance().add(op.schema().name());
  HostCall(op, *stack).run();
}

/// The one op that reads one kind of memory and writes the other.
Tensor& copy(Tensor& self, const Tensor& source, bool non_blocking) {
  // Without waiting only to and from memory that is pinned; a single number of the host's is taken along.
  const auto& host = self.is_cpu() ? self : source;
  if (host.is_cpu() && !(non_blocking && PinnedMemory::instance().has(host.storage().data())))
    HostWaits::instance().add(self.is_cpu() ? "copy to the host" : "copy from the host");
  const auto copy_now = [](const Tensor& to, const Tensor& from) {
    Opened opened;
    host_view(to, opened).copy_(host_view(from, opened));
  };
  auto& streams = PretendedStreams::instance();
  if (PretendedStreams::current() == 0) return streams.work(), copy_now(self, source), self;
  LOCKSTEP_CHECK(self.is_cpu() != source.is_cpu(), "a copy on another stream that is none to or from the host");
  LOCKSTEP_CHECK(self.is_cuda() || streams.has_seen_default(), "a copy of what the default stream may still write");
  // The GPU's memory is the caller's to keep until then.
  const auto& there = self.is_cuda() ? self : source;
  c10::weak_intrusive_ptr<c10::TensorImpl> kept(there.getIntrusivePtr());
  streams.give([kept, host, copy_now, is_to_gpu = self.is_cuda()] {
    auto impl = kept.lock();
    LOCKSTEP_CHECK(impl, "memory that was given back while it is copied");
    const Tensor gpu(std::move(impl));
    is_to_gpu ? copy_now(gpu, host) : copy_now(host, gpu);
  });
  return self;
}

// Ops that LibTorch has for GPUs alone, by what it documents of them: heads in groups, and a causal mask that ends at
// the last key for the last row.

void require_served(const Tensor& query, const Tensor& key, const Tensor& value) {
  const int64_t size = query.size(3);
  LOCKSTEP_CHECK(query.element_size() == 2 && size % 8 == 0 && size <= 256, "flash attention of {} of size {}",
                 c10::toString(query.scalar_type()), size);
  for (const auto& each : {query, key, value})
    LOCKSTEP_CHECK(each.size(3) == size && each.stride(3) == 1 && each.stride(0) % 8 == 0 && each.stride(1) % 8 == 0 &&
                       each.stride(2) % 8 == 0 && reinterpret_cast<uintptr_t>(each.const_data_ptr()) % 16 == 0,
                   "flash attention of sizes {}, strides {}", c10::str(each.sizes()), c10::str(each.strides()));
}

using FlashAttention = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

FlashAttention flash_attention(const Tensor& query, const Tensor& key, const Tensor& value, double /*dropout*/,
                               bool causal, bool /*mask*/, std::optional<double> scale) {
  require_served(query, key, value);
  Opened opened;
  const auto [output, log_sum] =
      kernels::attention(host_view(query, opened), host_view(key, opened), host_view(value, opened), causal, *scale,
                         key.size(2) - query.size(2));
  return {on_gpu(output), on_gpu(log_sum.contiguous()), {}, {}, query.size(2), key.size(2), {}, {}, {}};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_backward(const Tensor& gradient, const Tensor& query,
                                                            const Tensor& key, const Tensor& value,
                                                            const Tensor& output, const Tensor& log_sum,
                                                            const Tensor& /*starts*/, const Tensor& /*key starts*/,
                                                            c10::SymInt /*rows*/, c10::SymInt /*keys*/,
                                                            double /*dropout*/, bool causal, const Tensor& /*seed*/,
                                                            const Tensor& /*offset*/, std::optional<double> scale) {
  require_served(query, key, value);
  Opened opened;
  LOCKSTEP_CHECK(at::globalContext().deterministicAlgorithms(), "gradients of queries that differ from run to run");
  const auto [dq, dk, dv] = kernels::attention_backward(
      host_view(gradient, opened), host_view(query, opened), host_view(key, opened), host_view(value, opened),
      host_view(output, opened), host_view(log_sum, opened), causal, *scale, key.size(2) - query.size(2));
  return {on_gpu(dq), on_gpu(dk), on_gpu(dv)};
}

/// Products of eight-bit rows, each under a scale, as documented for torch._scaled_mm and its CUDA kernels demand.
Tensor scaled_mm(const Tensor& left, const Tensor& right, const Tensor& left_scale, const Tensor& right_scale,
                 const std::optional<Tensor>& /*bias*/, const std::optional<Tensor>& /*result's scale*/,
                 std::optional<c10::ScalarType> dtype, bool fast) {
  LOCKSTEP_CHECK(!fast, "_scaled_mm whose sums stay in a tensor core");
  const int64_t m = left.size(0), k = left.size(1), n = right.size(1);
  LOCKSTEP_CHECK(c10::isFloat8Type(left.scalar_type()) && right.scalar_type() == c10::kFloat8_e4m3fn &&
                     left.is_contiguous() && right.t().is_contiguous() && right.size(0) == k && k % 16 == 0 &&
                     n % 16 == 0 && reinterpret_cast<uintptr_t>(left.const_data_ptr()) % 16 == 0 &&
                     reinterpret_cast<uintptr_t>(right.const_data_ptr()) % 16 == 0,
                 "_scaled_mm of {} {} and {} {}", c10::toString(left.scalar_type()), c10::str(left.sizes()),
                 c10::toString(right.scalar_type()), c10::str(right.sizes()));
  LOCKSTEP_CHECK(left_scale.sizes() == c10::IntArrayRef({m, 1}) && right_scale.sizes() == c10::IntArrayRef({1, n}) &&
                     left_scale.is_contiguous() && right_scale.is_contiguous() &&
                     left_scale.scalar_type() == at::kFloat && right_scale.scalar_type() == at::kFloat &&
                     dtype == c10::kBFloat16,
                 "_scaled_mm with scales {} and {}", c10::str(left_scale.sizes()), c10::str(right_scale.sizes()));
  Opened opened;
  const auto sum = at::mm(host_view(left, opened).to(at::kFloat), host_view(right, opened).to(at::kFloat));
  return on_gpu(sum.mul_(host_view(left_scale, opened)).mul_(host_view(right_scale, opened)).to(*dtype));
}

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>()); }

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("copy_", TORCH_FN(copy));
  library.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  library.impl("view", TORCH_FN(at::native::view));
  library.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  library.impl("unfold", TORCH_FN(at::native::unfold));
  library.impl("_scaled_mm", TORCH_FN(scaled_mm));
  library.impl("_scaled_dot_product_flash_attention", TORCH_FN(flash_attention));
  library.impl("_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_attention_backward));
}

/// What LibTorch asks the GPU's library.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  c10::Device getDeviceFromPtr(void*) const override { return kGpu; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedMemory::instance(); }
};

struct PretendGuard final : c10::impl::NoOpDeviceGuardImpl<c10::kCUDA> {
  using Event = PretendedStreams::Event;
  static PretendedStreams& streams() { return PretendedStreams::instance(); }
  static c10::Stream stream(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, kGpu, id); }

  c10::Device getDevice() const override { return kGpu; }
  c10::Stream getStream(c10::Device) const noexcept override { return stream(PretendedStreams::current()); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(streams().make()); }
  c10::Stream exchangeStream(c10::Stream to) const noexcept override {
    return stream(std::exchange(PretendedStreams::current(), to.id()));
  }
  void record(void** event, const c10::Stream& on, c10::DeviceIndex, c10::EventFlag) const override {
    if (!*event) *event = new Event;
    *static_cast<Event*>(*event) = streams().record(on.id());
  }
  void block(void* event, const c10::Stream& on) const override {
    if (event) streams().block(*static_cast<Event*>(event), on.id());
  }
  void synchronizeEvent(void* event) const override {
    HostWaits::instance().add("event");
    if (event) streams().reach(*static_cast<Event*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Event*>(event); }
  void synchronizeDevice(c10::DeviceIndex) const override { streams().reach_all(); }
};

C10_REGISTER_GUARD_IMPL(CUDA, PretendGuard)

}  // namespace

void require_gpu(int) {}

}  // namespace lockstep

namespace at {
using lockstep::CUDAHooks;  // the name it is looked for by
REGISTER_CUDA_HOOKS(CUDAHooks)
}  // namespace at
