// Scaled dot-product attention, taken whole. Heads and batch are free; a cut of the query sequence needs whole keys and
// values, whose gradients are then Partial. Under canonical numerics it falls between leaves: those gradients are nodes
// of the tree over all query rows.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/attention_shapes.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/own_ops/parameter_gradients.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

void canonical_attention(const LocalCall& call, torch::jit::Stack& stack) {
  canonical_forward(call, stack, call.argument(stack, "causal").toBool());
}

void canonical_attention_backward(const LocalCall& call, torch::jit::Stack& stack) {
  canonical_backward(call, stack, call.argument(stack, "causal").toBool());
}

struct Attention : torch::autograd::Function<Attention> {
  static Tensor forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                        bool causal, double scale) {
    auto [output, log_sum] = mesh_ops::attention(query, key, value, causal, scale);
    context->save_for_backward({query, key, value, output, log_sum});
    context->saved_data["causal"] = causal;
    context->saved_data["scale"] = scale;
    return output;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    auto [dq, dk, dv] =
        mesh_ops::attention_backward(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4],
                                     context->saved_data["causal"].toBool(), context->saved_data["scale"].toDouble());
    return {dq, dk, dv, {}, {}};
  }
};

/// With dropout. The places say that no row is hidden from a key before it; without `causal` none is hidden at all.
///
/// Which weights are dropped is a function of the step, the module and the element [sample, head, query, key] of the
/// whole matrix (docs/rng.md): the same on every mesh.
Tensor attention_with_dropout(const Tensor& query, const Tensor& key, const Tensor& value, double dropout, bool causal,
                              double scale) {
  if (!is_sharded(query))
    fail<BadInput>("attention: the query is a plain tensor beside tensors of a mesh; distribute() it");
  if (key.dim() != 4)
    fail<BadInput>("attention: key should be [batch, heads, length, size]; it has {} dimensions", key.dim());
  const int64_t first_row = causal ? 0 : key.size(2);
  const auto places = mesh_ops::places_of_one_document(query, first_row);
  const auto draws = mesh_ops::attention_draws(query, key.size(2), first_row);
  return std::get<0>(mesh_ops::document_attention(query, key, value, places, {draws, dropout}, scale, first_row));
}

Tensor aten_attention(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& mask,
                      double dropout, bool causal, std::optional<double> scale, bool grouped) {
  if (query.dim() != 4)  // LibTorch puts it together of products and a softmax
    return std::get<0>(
        at::_scaled_dot_product_attention_math(query, key, value, mask, dropout, causal, {}, scale, grouped));
  if (mask && mask->defined()) fail<BadInput>("attention on the mesh takes no explicit mask; use is_causal");
  if (!grouped && key.dim() == 4 && key.size(1) != query.size(1) && key.size(1) != 1)
    fail<BadInput>("attention: {} heads of the query and {} of the key are groups only with enable_gqa", query.size(1),
                   key.size(1));
  const double factor = scale.value_or(1.0 / std::sqrt(static_cast<double>(query.size(-1))));
  if (mesh_ops::drops_weights(dropout)) return attention_with_dropout(query, key, value, dropout, causal, factor);
  return Attention::apply(query, key, value, causal, factor);
}

void register_derivatives(torch::Library& aten, torch::Library& /*mesh*/) {
  aten.impl("scaled_dot_product_attention", TORCH_FN(aten_attention));
}

constexpr OwnOp kOps[] = {
    {.schema = "attention(Tensor query, Tensor key, Tensor value, bool causal, float scale, int first_row) -> "
               "(Tensor, Tensor)",
     .on_cpu = kernel<kernels::attention>,
     .on_gpu = kernel<on_gpu::attention>,
     .rule = {"mesh::attention", "attention", "b(h*g)ld,bhsd,bhse->b(h*g)le,b(h*g)l", "-", Rule::kNoReduce,
              whole_sharding, whole_shapes, from_first_row<0>},
     .canonical = {canonical_attention, Rule::kPlain, true}},
    {.schema = "attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, "
               "Tensor log_sum, bool causal, float scale, int first_row) -> (Tensor, Tensor, Tensor)",
     .on_cpu = kernel<kernels::attention_backward>,
     .on_gpu = kernel<on_gpu::attention_backward>,
     .rule = {"mesh::attention_backward", "attention", "...->b(h*g)ld,bhsd,bhse", "-", Rule::kPlain,
              whole_backward_sharding, whole_backward_shapes, from_first_row<1>},
     .canonical = {canonical_attention_backward, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily attention() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

Tensor places_of_one_document(const Tensor& query, int64_t first_row) {
  const auto places = at::arange(first_row, first_row + query.size(2), at::kLong);
  return distribute(places.expand({query.size(0), query.size(2)}).contiguous(),
                    Layout::replicated(layout_of(query).mesh()));
}

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                     double scale, int64_t first_row) {
  static const auto op = own_ops::typed_op<kernels::attention>("mesh::attention");
  return op.call(query, key, value, causal, scale, first_row);
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row) {
  static const auto op = own_ops::typed_op<kernels::attention_backward>("mesh::attention_backward");
  return op.call(gradient, query, key, value, output, log_sum, causal, scale, first_row);
}

}  // namespace mesh_ops
}  // namespace lockstep
