// Sums of dimensions, rows and tables in the order of the tree.
#include <ATen/Functions.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "runtime/kernels/tensors/canonical_sums.h"
#include "runtime/kernels/tensors/softmax.h"
#include "runtime/planning/canonical_local.h"
#include "runtime/planning/rules/canonical/canonical_forms.h"

namespace lockstep::rules {
namespace {

using at::Tensor;
using kernels::only_node;
using kernels::Summands;

std::vector<int64_t> sorted_dims(const LocalCall& call, const torch::jit::Stack& stack, bool all) {
  const auto& spec = *call.plan.wanted[0];
  std::vector<int64_t> dims;
  if (!all && !call.argument(stack, "dim").isNone())
    for (const int64_t d : call.argument(stack, "dim").toIntVector()) dims.push_back(d < 0 ? d + spec.dim_count() : d);
  if (dims.empty())
    for (int64_t d = 0; d < spec.dim_count(); ++d) dims.push_back(d);
  std::sort(dims.begin(), dims.end());
  return dims;
}

/// The tree of one dimension of a sum: the batch's over samples, any other's over elements.
SumTree tree_of(const LocalCall& call, int64_t dim) {
  return dim == 0 ? batch_tree(call) : SumTree::over_elements(global_size(call, 0, dim));
}

/// Nested: the last dimension is summed first. Only one of them is cut, and its nodes come out in front at the end.
Tensor sum_dims(const LocalCall& call, Tensor x, const std::vector<int64_t>& dims) {
  int64_t nodes_in_front = 0;
  for (auto dim = dims.rbegin(); dim != dims.rend(); ++dim) {
    const auto summands = summands_here(call, 0, static_cast<int>(*dim), tree_of(call, *dim));
    auto nodes = kernels::ordered_sum(x, *dim + nodes_in_front, summands);
    const bool cut = !summands.whole();
    LOCKSTEP_CHECK(!cut || dim + 1 == dims.rend(), "only the outermost of nested sums can be cut");
    x = cut ? nodes : only_node(nodes);
    nodes_in_front = cut ? 1 : 0;
  }
  return x;
}

void local_sum(const LocalCall& call, torch::jit::Stack& stack, bool all, bool mean) {
  const auto self = call.tensor(stack, "self");
  const auto& asked = call.argument(stack, "dtype");
  const auto dtype = asked.isNone() ? self.scalar_type() : asked.toScalarType();
  if (!c10::isFloatingType(dtype)) return call.op.callBoxed(stack);
  const auto x = self.to(at::toOpMathType(dtype));  // before it is summed, as LibTorch does
  const auto dims = sorted_dims(call, stack, all);
  const auto& result = *call.plan.results[0];
  auto sum = x.dim() == 0 ? x.clone() : sum_dims(call, x, dims);
  if (mean) {
    const auto results = static_cast<double>(result.element_count());
    const double count = results > 0 ? static_cast<double>(call.plan.wanted[0]->element_count()) / results : 1;
    sum = at::div(sum, at::full({}, count, sum.options()));  // by a number of the host a GPU would multiply
  }
  if (!result.layout.ordered_sum()) sum = sum.to(dtype);
  const at::IntArrayRef sizes = result.local_sizes[call.index];
  stack = {sum.sizes() == sizes ? sum : sum.reshape(sizes)};
}

void local_sum_all(const LocalCall& call, torch::jit::Stack& stack) { local_sum(call, stack, true, false); }
void local_sum_dims(const LocalCall& call, torch::jit::Stack& stack) { local_sum(call, stack, false, false); }
void local_mean_all(const LocalCall& call, torch::jit::Stack& stack) { local_sum(call, stack, true, true); }
void local_mean_dims(const LocalCall& call, torch::jit::Stack& stack) { local_sum(call, stack, false, true); }

void local_table_gradient(const LocalCall& call, torch::jit::Stack& stack) {
  if (call.argument(stack, "scale_grad_by_freq").toBool())
    fail<BadInput>("embedding with scale_grad_by_freq has no canonical form");
  const auto gradient = call.tensor(stack, "grad_output");
  auto tokens = call.tensor(stack, "indices");
  const auto padding = call.argument(stack, "padding_idx").toInt();
  if (padding >= 0) tokens = tokens.masked_fill(tokens == padding, -1);
  const auto& spec = *call.plan.wanted[1];
  if (spec.sizes.empty()) tokens = tokens.unsqueeze(0);
  const int64_t size = spec.sizes.empty() ? 1 : spec.sizes[0];
  const auto tree = spec.sizes.empty() ? SumTree::over_elements(1) : batch_tree(call);
  const auto batch = spec.sizes.empty() ? Summands::all(tree) : summands_here(call, 1, 0, tree);
  const int64_t inner = size > 0 ? spec.element_count() / size : 1;
  const int64_t per_sample = inner * tree.leaf;
  const Summands samples{SumTree::over_samples(tree.leaf_count()), batch.first / tree.leaf,
                         (batch.count + tree.leaf - 1) / tree.leaf};
  const auto rows = call.plan.results[0]->cut(call.index, 0);
  stack = {finished_sum(call,
                        kernels::ordered_table_gradient(gradient, tokens, samples, per_sample, rows.start, rows.length),
                        gradient.scalar_type())};
}

/// Softmax along one dimension, whole. A scalar is a row of one element.
using Softmax = Tensor (*)(const Tensor& x, int64_t dim);
template <Softmax kKernel>
void local_softmax(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "self");
  stack = {x.dim() == 0 ? kKernel(x.unsqueeze(0), 0).squeeze(0) : kKernel(x, call.argument(stack, "dim").toInt())};
}

using SoftmaxBackward = Tensor (*)(const Tensor& g, const Tensor& y, int64_t dim);
template <SoftmaxBackward kKernel>
void local_softmax_backward(const LocalCall& call, torch::jit::Stack& stack) {
  const auto g = call.tensor(stack, "grad_output"), y = call.tensor(stack, "output");
  stack = {g.dim() == 0 ? kKernel(g.unsqueeze(0), y.unsqueeze(0), 0).squeeze(0)
                        : kKernel(g, y, call.argument(stack, "dim").toInt())};
}

constexpr CanonicalRule kForms[] = {
    {"_log_softmax", local_softmax<kernels::log_softmax>},
    {"_log_softmax_backward_data", local_softmax_backward<kernels::log_softmax_backward>},
    {"_softmax", local_softmax<kernels::softmax>},
    {"_softmax_backward_data", local_softmax_backward<kernels::softmax_backward>},
    {"embedding_dense_backward", local_table_gradient, Rule::kSamples},
    {"mean", local_mean_all, Rule::kNoReduce | Rule::kSamples},
    {"mean.dim", local_mean_dims, Rule::kNoReduce | Rule::kSamples},
    {"sum", local_sum_all, Rule::kSamples},
    {"sum.dim_IntList", local_sum_dims, Rule::kSamples},
};

}  // namespace

std::span<const CanonicalRule> canonical_sums() { return kForms; }

}  // namespace lockstep::rules
