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

/// What the op's own plan refuses. Its parts would broadcast and promote.
void check_composed(const Tensor& query, const Tensor& key, const Tensor& value) {
  if (key.dim() != 4 || value.dim() != 4)
    fail<BadInput>("attention: key and value should be [batch, heads, length, size]; they have {} and {} dimensions",
                   key.dim(), value.dim());
  check_heads("attention", query.sizes(), key.sizes(), value.sizes());
  if (query.scalar_type() != key.scalar_type() || query.scalar_type() != value.scalar_type())
    fail<BadInput>("attention: query, key and value have dtypes {}, {} and {}; expected one",
                   c10::toString(query.scalar_type()), c10::toString(key.scalar_type()),
                   c10::toString(value.scalar_type()));
}

/// [b, h, s, d] -> [b, h * group, s, d]: each head for all queries that share it.
Tensor repeated(const Tensor& heads, int64_t group) {
  if (group == 1) return heads;
  const auto sizes = heads.sizes();
  return heads.unsqueeze(2)
      .expand({sizes[0], sizes[1], group, sizes[2], sizes[3]})
      .reshape({sizes[0], sizes[1] * group, sizes[2], sizes[3]});
}

/// [queries, keys]: where a query may not look, at keys that come after it.
Tensor later_keys(const Tensor& query, const Tensor& key) {
  const auto of = [](const Tensor& rows, int64_t dim) { return at::arange(rows.size(2), at::kLong).unsqueeze(dim); };
  return distribute(of(key, 0) > of(query, 1), Layout::replicated(layout_of(query).mesh()));
}

/// scaled_dot_product_attention() that drops a share `dropout` of all weights and scales the others up by
/// 1 / (1 - dropout), with gradients. Which are dropped is a function of the step, the module and the element [sample,
/// head, query, key] of the whole matrix (docs/rng.md): the same on every mesh.
///
/// Composed of ops that have rows of their own: the matrix of all weights is held, 17 bytes a weight in the forward
/// pass, of which 9 stay for the backward one, where attention without dropout holds none.
///
/// REQUIRES: query [b, h*g, l, d], key [b, h, s, d], value [b, h, s, e], on one mesh, of one dtype.
Tensor attention_with_dropout(const Tensor& query, const Tensor& key, const Tensor& value, double dropout, bool causal,
                              double scale) {
  const int64_t group = key.size(1) > 0 ? query.size(1) / key.size(1) : 1;
  const auto keys = repeated(widened(key), group), values = repeated(widened(value), group);
  auto scores = at::matmul(widened(query), keys.transpose(-2, -1)) * scale;
  if (causal) scores = scores.masked_fill(later_keys(query, key), -std::numeric_limits<double>::infinity());
  const auto weights = std::get<0>(at::native_dropout(at::softmax(scores, -1), dropout, /*train=*/true));
  return at::matmul(weights, values).to(query.scalar_type());
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
  if (dropout > 0) {
    check_composed(query, key, value);
    return attention_with_dropout(query, key, value, dropout, causal, factor);
  }
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
     .canonical = {canonical_attention}},
    {.schema = "attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, "
               "Tensor log_sum, bool causal, float scale, int first_row) -> (Tensor, Tensor, Tensor)",
     .on_cpu = kernel<kernels::attention_backward>,
     .on_gpu = kernel<on_gpu::attention_backward>,
     .rule = {"mesh::attention_backward", "attention", "...->b(h*g)ld,bhsd,bhse", "-", Rule::kPlain,
              whole_backward_sharding, whole_backward_shapes, from_first_row<1>},
     .canonical = {canonical_attention_backward}},
};

}  // namespace

OwnOpFamily attention() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

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
