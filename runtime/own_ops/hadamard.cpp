// The Hadamard transform of the last dimension: its derivative is the same op.
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "core/phase.h"
#include "runtime/context/scopes.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kMostElements = 32768;

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

std::vector<ResultShape> transformed_shape(const Call& call) {
  const auto& sizes = call.operand_sizes[0];
  const auto dtype = call.operand_dtypes[0];
  if (!is_real(dtype))
    fail<BadInput>("{}: it transforms float32, bfloat16 and float16, not {}", call.op, c10::toString(dtype));
  if (const int64_t n = sizes.back(); n < 2 || n > kMostElements || !is_power_of_two(n))
    fail<BadInput>("{}: the last dimension has {} elements, expected a power of two from 2 to {}", call.op, n,
                   kMostElements);
  return {{sizes, {}, dtype}};
}

Tensor call_op(const Tensor& x, double scale) {
  static const auto op = own_ops::typed_op<kernels::hadamard_transform>("mesh::hadamard_transform");
  return op.call(x, scale);
}

/// The mesh axis that cuts the last dimension into 2^k equal parts; -1: there is none, or more than one.
int cutting_axis(const Tensor& x) {
  if (!is_sharded(x) || x.dim() == 0) return -1;
  const auto& layout = layout_of(x);
  const auto cutters = layout.cutters(static_cast<int>(x.dim()) - 1);
  if (cutters.size() != 1) return -1;
  const int64_t ranks = layout.mesh().axis_size(cutters[0]), width = x.size(-1);
  if (ranks < 2 || !is_power_of_two(ranks) || !is_power_of_two(width) || width > kMostElements) return -1;
  const int64_t unit = layout[cutters[0]].unit, units = (width + unit - 1) / unit;
  const bool is_even = (units + ranks - 1) / ranks * unit == width / ranks;
  return is_even && width / ranks >= ranks ? cutters[0] : -1;
}

Layout cut_at(const Tensor& x, int axis, int64_t dim) {
  return layout_of(x).with(axis, Placement::shard(static_cast<int>(dim)));
}

/// x [..., n] with n cut into `ranks` parts: each rank's stages within its part, then those across parts, of
/// n / ranks^2 columns on each rank; between them, and after them, all-to-alls. (A butterfly's log2(ranks) exchanges of
/// whole shards send log2(ranks) n / ranks elements, these two (ranks - 1) / ranks of that each: as many for two ranks,
/// fewer for more.)
Tensor exchanged(const Tensor& x, int axis, double scale) {
  const PhaseScope scope(Phase::kReduce);  // ops that only some meshes have
  const int64_t ranks = layout_of(x).mesh().axis_size(axis), dims = x.dim();
  auto sizes = x.sizes().vec();
  sizes.back() /= ranks;
  sizes.insert(sizes.end() - 1, ranks);
  const auto wide = x.scalar_type() == c10::kDouble ? x : x.to(c10::kFloat);
  const auto inside = call_op(wide.view(sizes), 1);
  const auto columns = redistribute_values(inside, cut_at(inside, axis, dims), "exchange");
  const auto across = call_op(columns.transpose(-1, -2).contiguous(), scale).transpose(-1, -2);
  const auto back = redistribute_values(across, cut_at(across, axis, dims - 1), "exchange");
  return back.contiguous().view(x.sizes()).to(x.scalar_type());
}

struct HadamardTransform : torch::autograd::Function<HadamardTransform> {
  static Tensor forward(AutogradContext* context, const Tensor& x, double scale) {
    context->saved_data["scale"] = scale;
    const at::AutoDispatchBelowAutograd below;
    return mesh_ops::hadamard_transform(x, scale);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {mesh_ops::hadamard_transform(gradients[0], context->saved_data["scale"].toDouble()), {}};
  }
};

Tensor differentiable_transform(const Tensor& x, double scale) { return HadamardTransform::apply(x, scale); }

void register_derivatives(torch::Library& /*aten*/, torch::Library& mesh) {
  mesh.impl("hadamard_transform", TORCH_FN(differentiable_transform));
}

constexpr OwnOp kOps[] = {
    {.schema = "hadamard_transform(Tensor x, float scale) -> Tensor",
     .on_cpu = kernel<kernels::hadamard_transform>,
     .on_gpu = kernel<kernels::hadamard_transform>,
     .rule = {"mesh::hadamard_transform", "low precision", "...N->...N", "e", Rule::kPlain, nullptr, transformed_shape},
     .canonical = {.on_gpu = true}},
};

}  // namespace

OwnOpFamily hadamard() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor hadamard_transform(const Tensor& x, double scale) {
  const int axis = own_ops::cutting_axis(x);
  if (axis < 0 || (at::GradMode::is_enabled() && x.requires_grad())) return own_ops::call_op(x, scale);
  const at::AutoDispatchBelowAutograd below;
  return own_ops::exchanged(x, axis, scale);
}

}  // namespace mesh_ops
}  // namespace lockstep
