// Causal attention inside of each document of packed samples, and attention with dropout, taken whole: the kernels of
// canonical numerics, in both. Cut as attention is (attention.cpp); a query row brings along its place in its document,
// and what says which of its weights are dropped.
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/own_ops/attention_shapes.h"
#include "runtime/own_ops/double_backward.h"
#include "runtime/own_ops/families.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep {

using at::Tensor;

namespace own_ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

OpSharding sharding(const Call& call) {
  auto sharding = whole_sharding(call);
  sharding.operands.push_back(places_dims());
  if (has_draws(call, 4)) sharding.operands.push_back(draws_dims(group_of(call, 0, 1)));
  return sharding;
}

OpSharding backward_sharding(const Call& call) {
  auto sharding = whole_backward_sharding(call);
  sharding.operands.push_back(places_dims());
  if (has_draws(call, 7)) sharding.operands.push_back(draws_dims(group_of(call, 1, 2)));
  return sharding;
}

std::vector<ResultShape> shapes(const Call& call) {
  auto shapes = whole_shapes(call);
  expect_places(call, 3, call.operand_sizes[0]), expect_draws(call, 4, call.operand_sizes[0]);
  return shapes;
}

std::vector<ResultShape> backward_shapes(const Call& call) {
  auto shapes = whole_backward_shapes(call);
  expect_places(call, 6, call.operand_sizes[1]), expect_draws(call, 7, call.operand_sizes[1]);
  return shapes;
}

void canonical_document_attention(const LocalCall& call, torch::jit::Stack& stack) {
  canonical_forward(call, stack, /*causal=*/true, attention_rows(call, stack));
}

void canonical_document_attention_backward(const LocalCall& call, torch::jit::Stack& stack) {
  canonical_backward(call, stack, /*causal=*/true, attention_rows(call, stack));
}

std::optional<Tensor> given(const Tensor& saved) { return saved.defined() ? std::optional(saved) : std::nullopt; }

struct DocumentAttention : torch::autograd::Function<DocumentAttention> {
  static variable_list forward(AutogradContext* context, const Tensor& query, const Tensor& key, const Tensor& value,
                               const Tensor& places, const std::optional<Tensor>& draws, double dropout, double scale,
                               int64_t first) {
    const at::AutoDispatchBelowAutograd below;
    auto [output, log_sum] = mesh_ops::document_attention(query, key, value, places, {draws, dropout}, scale, first);
    context->save_for_backward({query, key, value, output, log_sum, places, draws.value_or(Tensor())});
    context->mark_non_differentiable({log_sum});
    context->set_materialize_grads(false);  // of log_sum, on no mesh
    context->saved_data["scale"] = scale, context->saved_data["first"] = first;
    context->saved_data["dropout"] = dropout;
    return {output, log_sum};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    if (is_differentiated_again())
      fail<BadInput>(
          "attention in packed documents, or with dropout, has no second derivative; set training.pack_documents = "
          "false and model.attention_dropout = 0 (dropout_p of scaled_dot_product_attention)");
    if (!gradients[0].defined()) return variable_list(8);
    const auto saved = context->get_saved_variables();
    auto [dq, dk, dv] = mesh_ops::document_attention_backward(
        gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4], saved[5],
        {given(saved[6]), context->saved_data["dropout"].toDouble()}, context->saved_data["scale"].toDouble(),
        context->saved_data["first"].toInt());
    return {dq, dk, dv, {}, {}, {}, {}, {}};
  }
};

std::tuple<Tensor, Tensor> differentiable(const Tensor& query, const Tensor& key, const Tensor& value,
                                          const Tensor& places, const std::optional<Tensor>& draws, double dropout,
                                          double scale, int64_t first) {
  const auto results = DocumentAttention::apply(query, key, value, places, draws, dropout, scale, first);
  return {results[0], results[1]};
}

void register_derivatives(torch::Library& /*aten*/, torch::Library& mesh) {
  mesh.impl("document_attention", TORCH_FN(differentiable));
}

constexpr OwnOp kOps[] = {
    {.schema =
         "document_attention(Tensor query, Tensor key, Tensor value, Tensor places, Tensor? draws, float dropout, "
         "float scale, int first_row) -> (Tensor, Tensor)",
     .on_cpu = kernel<kernels::document_attention>,
     .on_gpu = kernel<composed::document_attention>,
     .rule = {"mesh::document_attention", "attention", "b(h*g)ld,bhsd,bhse,bl,b(h*g)lr->b(h*g)le,b(h*g)l", "-",
              Rule::kNoReduce, sharding, shapes, from_first_row<0>},
     .canonical = {canonical_document_attention, Rule::kPlain, true}},
    {.schema = "document_attention_backward(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor output, "
               "Tensor log_sum, Tensor places, Tensor? draws, float dropout, float scale, int first_row) -> "
               "(Tensor, Tensor, Tensor)",
     .on_cpu = kernel<kernels::document_attention_backward>,
     .on_gpu = kernel<composed::document_attention_backward>,
     .rule = {"mesh::document_attention_backward", "attention", "...->b(h*g)ld,bhsd,bhse", "-", Rule::kPlain,
              backward_sharding, backward_shapes, from_first_row<1>},
     .canonical = {canonical_document_attention_backward, Rule::kPlain, true}},
};

}  // namespace

OwnOpFamily document_attention() { return {kOps, register_derivatives}; }

}  // namespace own_ops

namespace mesh_ops {

std::tuple<Tensor, Tensor> document_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const Tensor& places, const Dropout& dropout, double scale,
                                              int64_t first_row) {
  static const auto op = own_ops::typed_op<kernels::document_attention>("mesh::document_attention");
  return op.call(query, key, value, places, dropout.draws, dropout.share, scale, first_row);
}

std::tuple<Tensor, Tensor, Tensor> document_attention_backward(const Tensor& gradient, const Tensor& query,
                                                               const Tensor& key, const Tensor& value,
                                                               const Tensor& output, const Tensor& log_sum,
                                                               const Tensor& places, const Dropout& dropout,
                                                               double scale, int64_t first_row) {
  static const auto op = own_ops::typed_op<kernels::document_attention_backward>("mesh::document_attention_backward");
  return op.call(gradient, query, key, value, output, log_sum, places, dropout.draws, dropout.share, scale, first_row);
}

}  // namespace mesh_ops
}  // namespace lockstep
