#include "runtime/dispatch/native_kernels.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/deferred/deferred_gradients.h"
#include "runtime/dispatch/dispatch.h"
#include "runtime/local_calls/decomposition.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/own_ops/parameter_gradients.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;

/// Calls the boxed kernel by hand.
Tensor dispatch_named(const char* name, const char* overload, torch::jit::Stack stack) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  dispatch(op, &stack);
  return stack.empty() ? Tensor() : stack.back().toTensor();
}

Tensor to_copy(const Tensor& self, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout> layout,
               std::optional<c10::Device> device, std::optional<bool> pin_memory, bool non_blocking,
               std::optional<c10::MemoryFormat> format) {
  const auto target = device.value_or(self.device());
  if (!is_sharded(self)) {
    const auto& mesh = RunContext::current().mesh();
    const PlainTensors guard;
    return distribute(dtype ? self.to(*dtype) : self, Layout::replicated(mesh));
  }
  if (target.type() != c10::kPrivateUse1) return gather(self).to(dtype.value_or(self.scalar_type())).to(target);
  return dispatch_named("aten::_to_copy", "", {self, dtype, layout, c10::IValue(), pin_memory, non_blocking, format});
}

Tensor copy_from(const Tensor& self, const Tensor& destination, bool /*non_blocking*/) {
  auto target = destination;
  const PlainTensors guard;
  if (is_sharded(destination))
    dispatch_named("aten::copy_", "",
                   {destination, is_sharded(self) ? self : distribute(self, layout_of(destination)), false});
  else
    target.copy_(gather(self));
  return target;
}

Tensor& copy_into(Tensor& self, const Tensor& source, bool non_blocking) {
  if (!is_sharded(self)) {
    const PlainTensors guard;
    self.copy_(gather(source));
    return self;
  }
  const auto from = is_sharded(source) ? source : distribute(source.expand(self.sizes()), layout_of(self));
  dispatch_named("aten::copy_", "", {self, from, non_blocking});
  return self;
}

/// `.item()`: a collective when the tensor is sharded or Partial.
at::Scalar item(const Tensor& self) {
  if (sharded(self).spec().layout.mesh().world().meta())
    fail<BadInput>("the value of a tensor was asked for in a run without values (--dry-run)");
  const PlainTensors guard;
  return gather(self).item();  // as stored: in the float64 domain nothing is rounded here
}

Tensor& refuse_set(Tensor&, const Tensor&) { fail<BadInput>("set_ has no meaning on a sharded tensor"); }
const Tensor& refuse_resize(const Tensor& self, c10::SymIntArrayRef, std::optional<c10::MemoryFormat>) {
  fail<BadInput>("resize_ has no meaning on a sharded tensor ({})", spec_of(self).text());
}

/// Under canonical numerics a bias is no part of the ordered sum: it is added when that is done.
Tensor linear(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  const bool apart = bias && bias->defined() && layout_of(input).mesh().world().canonical();
  const auto product = dispatch_named("aten::linear", "", {input, weight, apart ? c10::IValue() : c10::IValue(bias)});
  return apart ? at::add(product, *bias) : product;
}

/// Where products are taken apart, but for one of a gradient whose rows arrive.
bool puts_off_products(const Tensor& gradient) {
  const auto& decomposition = layout_of(gradient).mesh().world().part<Decomposition>();
  return decomposition.is_on() && !decomposition.was_gathered(gradient);
}

std::tuple<Tensor, Tensor, Tensor> linear_backward(const Tensor& input, const Tensor& gradient, const Tensor& weight,
                                                   std::array<bool, 3> wanted) {
  Tensor of_input, of_weight, of_bias;
  // A product that is put off waits for the next op: that of the input's gradient is to be its reduce-scatter.
  const bool input_last = puts_off_products(gradient);
  if (wanted[0] && !input_last) of_input = at::matmul(gradient, weight);
  if (wanted[1] && DeferredGradients::may_wait(weight))
    DeferredGradients::put_off(
        weight, [g = gradient.tensor_data(), x = input.tensor_data()] { return linear_weight_gradient(g, x); });
  else if (wanted[1])
    of_weight = linear_weight_gradient(gradient, input);
  if (wanted[2]) of_bias = bias_gradient(gradient);
  if (wanted[0] && input_last) of_input = at::matmul(gradient, weight);
  return {of_input, of_weight, of_bias};
}

/// Sums over the dimensions that were broadcast.
Tensor sum_to_sizes(Tensor tensor, c10::IntArrayRef sizes) {
  std::vector<int64_t> dims;
  const auto extra = tensor.dim() - static_cast<int64_t>(sizes.size());
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (d < extra || (sizes[static_cast<size_t>(d - extra)] == 1 && tensor.size(d) != 1)) dims.push_back(d);
  if (!dims.empty()) tensor = at::sum(tensor, dims, true);
  return tensor.view(sizes);
}

std::tuple<Tensor, Tensor> matmul_backward(const Tensor& gradient, const Tensor& self, const Tensor& other,
                                           std::array<bool, 2> wanted) {
  const bool row = self.dim() == 1, column = other.dim() == 1;
  const auto a = row ? self.unsqueeze(0) : self, b = column ? other.unsqueeze(1) : other;
  auto g = gradient;
  if (column) g = g.unsqueeze(-1);
  if (row) g = g.unsqueeze(-2);
  Tensor self_gradient, other_gradient;
  if (wanted[0]) self_gradient = sum_to_sizes(at::matmul(g, b.transpose(-1, -2)), a.sizes()).view(self.sizes());
  if (wanted[1] && b.dim() == 2)
    other_gradient = mesh_ops::weight_gradient(a, g).view(other.sizes());
  else if (wanted[1])
    other_gradient = sum_to_sizes(at::matmul(a.transpose(-1, -2), g), b.sizes()).view(other.sizes());
  return {self_gradient, other_gradient};
}

}  // namespace

void register_native_kernels(torch::Library& library) {
  library.impl("_to_copy", TORCH_FN(to_copy));
  library.impl("_copy_from", TORCH_FN(copy_from));
  library.impl("copy_", TORCH_FN(copy_into));
  library.impl("_local_scalar_dense", TORCH_FN(item));
  library.impl("set_.source_Tensor", TORCH_FN(refuse_set));
  library.impl("resize_", TORCH_FN(refuse_resize));
  library.impl("linear", TORCH_FN(linear));
  library.impl("linear_backward", TORCH_FN(linear_backward));
  library.impl("matmul_backward", TORCH_FN(matmul_backward));
}

const std::set<std::string>& native_kernels() {
  static const std::set<std::string> names{"_to_copy", "_copy_from",      "copy_",          "_local_scalar_dense",
                                           "linear",   "linear_backward", "matmul_backward"};
  return names;
}

const std::set<std::string>& refused_by_hand() {
  static const std::set<std::string> names{"as_strided", "set_.source_Tensor", "resize_"};
  return names;
}

}  // namespace lockstep
