// Cross-entropy of every token, over a vocabulary that may be cut: a rank has a target's logit, or adds nothing for it.
#include <ATen/CompositeImplicitAutogradFunctions.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/deferred/range_checks.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/canonical_local.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Target minus the first class that this rank has of operand `logits`, -1 where the target lies elsewhere (or is
/// ignored).
Tensor local_target(const LocalCall& call, const torch::jit::Stack& stack, size_t logits) {
  const auto& spec = *call.plan.wanted[logits];
  const auto classes = spec.cut(call.index, static_cast<int>(spec.dim_count()) - 1);
  const auto local = call.argument(stack, "target").toTensor() - classes.start;
  return at::where((local >= 0).logical_and_(local < classes.length), local, at::full_like(local, -1));
}

template <size_t kLogits>
void local_classes(const LocalCall& call, torch::jit::Stack& stack) {
  call.set_argument(stack, "target", local_target(call, stack, kLogits));
  call.op.callBoxed(stack);
}

void canonical_class_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  call.set_argument(stack, "target", local_target(call, stack, 1));
  direct_call<kernels::cross_entropy_backward>(call, stack);
}

void canonical_exponential_sum(const LocalCall& call, torch::jit::Stack& stack) {
  const auto logits = call.tensor(stack, "logits");
  const auto last = static_cast<int>(logits.dim()) - 1;
  const auto summands = summands_here(call, 0, last, SumTree::over_elements(global_size(call, 0, last)));
  stack = {finished_sum(call, kernels::ordered_exponential_sum(logits, call.tensor(stack, "shift"), summands),
                        call.tensor(stack, "shift").scalar_type())};
}

/// A sum for each row, in the dtype of what the row is shifted by.
std::vector<ResultShape> exponential_sum_shapes(const Call& call) {
  auto row = per_row(call)[0];
  row.dtype = call.dtype_of("shift");
  return {row};
}

/// Each rank looks at the labels that it has: an error ends the run on all. Ops take one that is none for one that
/// lies elsewhere.
void check_labels(const Tensor& labels, int64_t classes, int64_t ignored) {
  auto& world = layout_of(labels).mesh().world();
  const PlainTensors guard;
  for (const auto& shard : sharded(labels).shards()->whole())
    world.part<RangeChecks>().require(shard.masked_fill(shard == ignored, 0), classes, [=](int64_t wrong) {
      return fmt::format("cross-entropy: label {} is none of the {} classes, and not the ignored label {}", wrong,
                         classes, ignored);
    });
}

Tensor without_partial(const Tensor& tensor) {
  const auto& layout = layout_of(tensor);
  if (!layout.any_partial()) return tensor;
  auto placements = layout.placements();
  for (auto& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  return redistribute_values(tensor, Layout(layout.mesh(), std::move(placements)), "labels");
}

/// Numbers of rows are of `dtype`, to which logits are never converted.
struct TokenLoss : torch::autograd::Function<TokenLoss> {
  static Tensor forward(AutogradContext* context, const Tensor& logits, const Tensor& labels, int64_t ignore_index,
                        c10::ScalarType dtype) {
    const auto target = without_partial(labels);
    const auto valid = at::ne(target, ignore_index);
    check_labels(target, logits.size(-1), ignore_index);
    const auto shift = at::amax(logits, {-1}, false).to(dtype);
    const auto log_sum = at::add(at::log(mesh_ops::exponential_sum(logits, shift)), shift);
    const auto kept = at::masked_fill(target, at::eq(target, ignore_index), -1);
    const auto picked = mesh_ops::pick_class(logits, kept).to(dtype);
    context->save_for_backward({logits, log_sum, kept, valid});
    return at::mul(at::sub(log_sum, picked), valid.to(dtype));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    if (is_differentiated_again()) {
      const auto classes = at::unsqueeze(at::clamp(saved[2], 0, saved[0].size(-1) - 1), -1);
      const auto picked =
          at::squeeze(at::gather(at::log_softmax(saved[0].to(saved[1].scalar_type()), -1), -1, classes), -1);
      const auto losses = at::mul(at::neg(picked), saved[3].to(saved[1].scalar_type()));
      return {differentiable_gradients(losses, {saved[0]}, gradients[0])[0], {}, {}, {}};
    }
    const auto gradient = at::mul(gradients[0], saved[3].to(saved[1].scalar_type()));
    return {mesh_ops::cross_entropy_backward(gradient, saved[0], saved[1], saved[2]), {}, {}, {}};
  }
};

/// Of tokens, whose classes may be cut. Weights, smoothing, probabilities and places behind the classes are LibTorch's
/// business: it puts the loss together of its parts.
Tensor aten_cross_entropy(const Tensor& logits, const Tensor& target, const std::optional<Tensor>& weight,
                          int64_t reduction, c10::SymInt ignore_index, double label_smoothing) {
  const bool weighs = (weight && weight->defined()) || label_smoothing > 0 || label_smoothing < 0;
  if (weighs || logits.dim() != 2 || target.dim() != 1)
    return at::compositeimplicitautograd::cross_entropy_loss_symint(logits, target, weight, reduction, ignore_index,
                                                                    label_smoothing);
  const auto ignore = ignore_index.expect_int();
  auto loss = mesh_ops::token_losses(logits, target, ignore);
  if (reduction == 0) return loss;
  if (reduction == 2) return at::sum(loss);
  return at::div(at::sum(loss), at::sum(at::ne(target, ignore)).to(logits.scalar_type()));
}

void register_derivatives(torch::Library& aten, torch::Library& /*mesh*/) {
  aten.impl("cross_entropy_loss", TORCH_FN(aten_cross_entropy));
}

constexpr OwnOp kOps[] = {
    {.schema = "exponential_sum(Tensor logits, Tensor shift) -> Tensor",
     .on_cpu = kernel<kernels::exponential_sum>,
     .on_gpu = kernel<on_gpu::exponential_sum>,
     .rule = {"mesh::exponential_sum", "row", "...v,...->...", "-", Rule::kPlain, nullptr, exponential_sum_shapes},
     .canonical = {canonical_exponential_sum, Rule::kPlain, true}},
    {.schema = "pick_class(Tensor logits, Tensor target) -> Tensor",
     .on_cpu = kernel<kernels::pick_class>,
     .on_gpu = kernel<composed::pick_class>,
     .rule = {"mesh::pick_class", "row", "...v,...->...", "e-", Rule::kPlain, nullptr, per_row, local_classes<0>},
     .canonical = {local_disjoint<local_classes<0>>, Rule::kDisjoint, true}},
    {.schema = "cross_entropy_backward(Tensor gradient, Tensor logits, Tensor log_sum, Tensor target) -> Tensor",
     .on_cpu = kernel<kernels::cross_entropy_backward>,
     .on_gpu = kernel<on_gpu::cross_entropy_backward>,
     .rule = {"mesh::cross_entropy_backward", "row", "...,...v,...,...->...v", "e---", Rule::kPlain, nullptr,
              like_second, local_classes<1>},
     .canonical = {canonical_class_gradient, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily loss() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor exponential_sum(const Tensor& logits, const Tensor& shift) {
  static const auto op = own_ops::typed_op<kernels::exponential_sum>("mesh::exponential_sum");
  return op.call(logits, shift);
}

Tensor pick_class(const Tensor& logits, const Tensor& target) {
  static const auto op = own_ops::typed_op<kernels::pick_class>("mesh::pick_class");
  return op.call(logits, target);
}

Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target) {
  static const auto op = own_ops::typed_op<kernels::cross_entropy_backward>("mesh::cross_entropy_backward");
  return op.call(gradient, logits, log_sum, target);
}

Tensor token_losses(const Tensor& logits, const Tensor& target, int64_t ignored, std::optional<c10::ScalarType> dtype) {
  return own_ops::TokenLoss::apply(logits, target, ignored, dtype.value_or(logits.scalar_type()));
}

}  // namespace mesh_ops
}  // namespace lockstep
