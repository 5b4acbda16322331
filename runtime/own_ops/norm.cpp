// RMSNorm, and LayerNorm made of it. RMSNorm's backward is one op, or under canonical numerics two: the gradient of the
// weight is a sum over samples of sums over positions then.
#include <ATen/CompositeImplicitAutogradFunctions.h>
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include <numeric>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/own_ops/parameter_gradients.h"
#include "runtime/planning/canonical_local.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::vector<ResultShape> rms_norm_shapes(const Call& call) {
  auto row = per_row(call)[0];
  if (row.dtype == c10::kBFloat16 || row.dtype == c10::kHalf) row.dtype = c10::kFloat;
  return {{call.operand_sizes[0], {}, call.operand_dtypes[0]}, row};
}

std::vector<ResultShape> rms_norm_backward_shapes(const Call& call) {
  return {{call.sizes_of("x"), {}, call.dtype_of("x")}, {call.sizes_of("weight"), {}, call.dtype_of("weight")}};
}

/// The sum over everything between the batch and the last dimension, which can be cut where it is one dimension.
OpSharding weight_gradient_sharding(const Call& call) {
  const int64_t dims = call.dims(1);
  OpShardingDims x;
  for (int d = 0; d + 1 < dims; ++d) x.push_back(d == 0 || dims == 3 ? OpShardingDim{d} : OpShardingDim{});
  OpSharding sharding;
  sharding.operands.push_back(x);
  sharding.operands[0].push_back({});
  sharding.operands.push_back(sharding.operands[0]);
  sharding.operands.push_back(x);
  sharding.results = {{{0}, {}}};
  return sharding;
}

std::vector<ResultShape> weight_gradient_shape(const Call& call) {
  return {{{call.sizes_of("x")[0], call.sizes_of("x").back()}, {}, call.dtype_of("x")}};
}

/// Everything between the first and the last dimension; it can be cut where it is one dimension.
void canonical_weight_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "x");
  const auto& spec = *call.plan.wanted[1];
  int64_t between = 1;
  for (int64_t d = 1; d + 1 < spec.dim_count(); ++d) between *= global_size(call, 1, d);
  const auto tree = SumTree::over_elements(between);
  const auto summands = spec.dim_count() == 3 ? summands_here(call, 1, 1, tree) : kernels::Summands::all(tree);
  stack = {finished_sum(
      call,
      kernels::ordered_norm_gradient(call.tensor(stack, "gradient"), x, call.tensor(stack, "reciprocal"), summands),
      x.scalar_type())};
}

/// Where a sum over all dimensions between the first and the last one needs no gather.
Tensor with_whole_middle(const Tensor& sums) {
  auto layout = layout_of(sums);
  for (int dim = 1; dim + 1 < sums.dim(); ++dim)
    for (const int axis : layout.cutters(dim)) layout = layout.with(axis, Placement::replicate());
  return redistribute_values(sums, layout, "heads_of_norm");
}

/// Of [batch, heads, length, size]: over positions where they are, then over heads, of which there are too few for a
/// sum that is cut.
Tensor gradient_over_heads(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal) {
  const auto type = reciprocal.scalar_type();
  const auto products = at::mul(at::mul(gradient.to(type), x.to(type)), reciprocal.unsqueeze(-1));
  const auto sums = with_whole_middle(at::sum(products, x.dim() - 2));
  std::vector<int64_t> middle(static_cast<size_t>(x.dim()) - 3);
  std::iota(middle.begin(), middle.end(), 1);
  return declared_as(at::sum(at::sum(sums, middle), 0), x.scalar_type());  // not rounded before all samples are there
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  /// Canonical: each sample's sum first, then over samples.
  static Tensor weight_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal) {
    if (x.dim() == 1) return weight_gradient(gradient.unsqueeze(0), x.unsqueeze(0), reciprocal.unsqueeze(0));
    if (x.dim() > 3) return gradient_over_heads(gradient, x, reciprocal);
    return at::sum(mesh_ops::rms_norm_weight_gradient(gradient, x, reciprocal), {0}, false);
  }
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight, double epsilon) {
    auto [y, reciprocal] = mesh_ops::rms_norm(x, weight, epsilon);
    context->save_for_backward({x, reciprocal, weight});
    context->saved_data["epsilon"] = epsilon;
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    if (is_differentiated_again()) {
      const auto output = composed::rms_norm(saved[0], saved[2], context->saved_data["epsilon"].toDouble());
      auto own = differentiable_gradients(std::get<0>(output), {saved[0], saved[2]}, gradients[0]);
      return {own[0], own[1], {}};
    }
    if (layout_of(saved[0]).mesh().world().canonical())
      return {mesh_ops::rms_norm_input_gradient(gradients[0], saved[0], saved[1], saved[2]),
              weight_gradient(gradients[0], saved[0], saved[1]),
              {}};
    auto [dx, dw] = mesh_ops::rms_norm_backward(gradients[0], saved[0], saved[1], saved[2]);
    return {dx, dw, {}};
  }
};

/// Over the last dimension, with a weight: other norms are LibTorch's, of its parts.
bool is_of_rows(c10::SymIntArrayRef shape, const std::optional<Tensor>& weight) {
  return shape.size() == 1 && weight && weight->defined();
}

/// Parameters of the last dimension's size: what LibTorch refuses.
void require_one_dimension(const char* op, const Tensor& x, c10::SymIntArrayRef shape,
                           const std::optional<Tensor>& weight, const std::optional<Tensor>& bias) {
  const auto width = shape[0].expect_int();
  const auto fits = [&](const Tensor& parameter) { return parameter.dim() == 1 && parameter.size(0) == width; };
  if (x.dim() == 0 || x.size(-1) != width || !fits(*weight) || (bias && bias->defined() && !fits(*bias)))
    fail<BadInput>("{}: an input {}, a weight {} and a bias {} do not fit a normalized shape [{}]", op,
                   c10::str(x.sizes()), c10::str(weight->sizes()),
                   bias && bias->defined() ? c10::str(bias->sizes()) : "(none)", width);
}

Tensor aten_rms_norm(const Tensor& x, c10::SymIntArrayRef shape, const std::optional<Tensor>& weight,
                     std::optional<double> epsilon) {
  if (!is_of_rows(shape, weight)) return at::compositeimplicitautograd::rms_norm_symint(x, shape, weight, epsilon);
  require_one_dimension("rms_norm", x, shape, weight, {});
  return RmsNorm::apply(
      x, *weight, epsilon.value_or(x.scalar_type() == c10::kDouble ? 2.220446049250313e-16 : 1.1920928955078125e-07));
}

/// x + bias, the same for all rows. (Of an addition autograd would sum the bias's gradient to [1, ..., n] and view it,
/// which finishes a sum over samples too early.)
struct Shift : torch::autograd::Function<Shift> {
  static Tensor forward(AutogradContext* /*context*/, const Tensor& x, const Tensor& bias) { return at::add(x, bias); }
  static variable_list backward(AutogradContext* /*context*/, variable_list gradients) {
    return {gradients[0], bias_gradient(gradients[0])};
  }
};

/// RMSNorm of what lies around the row's mean: the mean square of that is the variance.
Tensor aten_layer_norm(const Tensor& x, c10::SymIntArrayRef shape, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, double epsilon, bool /*cudnn_enable*/) {
  if (!is_of_rows(shape, weight)) return std::get<0>(at::native_layer_norm_symint(x, shape, weight, bias, epsilon));
  require_one_dimension("layer_norm", x, shape, weight, bias);
  const auto scaled = RmsNorm::apply(at::sub(x, at::mean(x, {-1}, true)), *weight, epsilon);
  return bias && bias->defined() ? Shift::apply(scaled, *bias) : scaled;
}

void register_derivatives(torch::Library& aten, torch::Library& /*mesh*/) {
  aten.impl("rms_norm", TORCH_FN(aten_rms_norm));
  aten.impl("layer_norm", TORCH_FN(aten_layer_norm));
}

constexpr OwnOp kOps[] = {
    {.schema = "rms_norm(Tensor x, Tensor weight, float epsilon) -> (Tensor, Tensor)",
     .on_cpu = kernel<kernels::rms_norm>,
     .on_gpu = kernel<on_gpu::rms_norm>,
     .rule = {"mesh::rms_norm", "row", "...D,D->...D,...", "-", Rule::kNoReduce, nullptr, rms_norm_shapes},
     .canonical = {direct_call<kernels::rms_norm>, Rule::kPlain, true}},
    {.schema = "rms_norm_backward(Tensor gradient, Tensor x, Tensor reciprocal, Tensor weight) -> (Tensor, Tensor)",
     .on_cpu = kernel<kernels::rms_norm_backward>,
     .on_gpu = kernel<on_gpu::rms_norm_backward>,
     .rule = {"mesh::rms_norm_backward", "row", "...D,...D,...,D->...D,D", "e---", Rule::kPlain, nullptr,
              rms_norm_backward_shapes},
     .canonical = {.traits = Rule::kNoReduce}},
    {.schema = "rms_norm_input_gradient(Tensor gradient, Tensor x, Tensor reciprocal, Tensor weight) -> Tensor",
     .on_cpu = kernel<kernels::rms_norm_input_gradient>,
     .on_gpu = kernel<kernels::rms_norm_input_gradient>,
     .rule = {"mesh::rms_norm_input_gradient", "row", "...D,...D,...,D->...D", "e---", Rule::kPlain, nullptr,
              like_second},
     .canonical = {.on_gpu = true}},
    {.schema = "rms_norm_weight_gradient(Tensor gradient, Tensor x, Tensor reciprocal) -> Tensor",
     .on_cpu = kernel<kernels::rms_norm_weight_gradient>,
     .on_gpu = kernel<kernels::rms_norm_weight_gradient>,
     .rule = {"mesh::rms_norm_weight_gradient", "row", "b...D,b...D,b...->bD", "e--", Rule::kPlain,
              weight_gradient_sharding, weight_gradient_shape},
     .canonical = {canonical_weight_gradient, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily norm() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon) {
  static const auto op = own_ops::typed_op<kernels::rms_norm>("mesh::rms_norm");
  return op.call(x, weight, epsilon);
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight) {
  static const auto op = own_ops::typed_op<kernels::rms_norm_backward>("mesh::rms_norm_backward");
  return op.call(gradient, x, reciprocal, weight);
}

Tensor rms_norm_input_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                               const Tensor& weight) {
  static const auto op = own_ops::typed_op<kernels::rms_norm_input_gradient>("mesh::rms_norm_input_gradient");
  return op.call(gradient, x, reciprocal, weight);
}

Tensor rms_norm_weight_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal) {
  static const auto op = own_ops::typed_op<kernels::rms_norm_weight_gradient>("mesh::rms_norm_weight_gradient");
  return op.call(gradient, x, reciprocal);
}

}  // namespace mesh_ops
}  // namespace lockstep
