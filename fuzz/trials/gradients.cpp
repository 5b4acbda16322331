#include "fuzz/trials/gradients.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/autograd.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

using Tensors = std::vector<at::Tensor>;

at::Tensor as_leaf(const at::Tensor& tensor) {
  auto leaf = tensor.detach();
  return leaf.is_floating_point() ? leaf.requires_grad_() : leaf;
}

/// Undefined where no value asks for a gradient.
at::Tensor weighted_sum(const Tensors& values, const Tensors& weights) {
  at::Tensor total;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].defined() || !values[i].requires_grad()) continue;
    const auto part = at::sum(at::mul(values[i], weights[i]));
    total = total.defined() ? total + part : part;
  }
  return total;
}

/// A call on leaves that ask for gradients.
struct Differentiable {
  const OpCall& call;
  Tensors leaves;  ///< per slot
  LinearFunctions functions;

  Tensors gradients() {
    const bool twice = !functions.second.empty();
    if (twice)
      for (auto& weight : functions.first) weight = as_leaf(weight);
    auto total = weighted_sum(run(call.op, with_tensors(call, leaves)), functions.first);
    if (twice && total.defined()) total = weighted_sum(first_gradients(total), functions.second);
    if (total.defined()) total.backward();
    Tensors gradients;
    for (const auto& leaf : leaves) gradients.push_back(leaf.grad());
    if (twice)
      for (const auto& weight : functions.first) gradients.push_back(weight.grad());
    return gradients;
  }

 private:
  /// Per leaf.
  Tensors first_gradients(const at::Tensor& total) const {
    Tensors asked, gradients;
    for (const auto& leaf : leaves)
      if (leaf.requires_grad()) asked.push_back(leaf);
    const auto given = torch::autograd::grad({total}, asked, {}, true, true, true);
    for (size_t i = 0, next = 0; i < leaves.size(); ++i)
      gradients.push_back(leaves[i].requires_grad() ? given[next++] : at::Tensor());
    return gradients;
  }
};

LinearFunctions placed(LinearFunctions functions, const Place& place) {
  for (auto* weights : {&functions.first, &functions.second})
    for (auto& weight : *weights) weight = place(weight);
  return functions;
}

/// The whole computation on plain doubles.
Tensors plain_gradients(const OpCall& call, const LinearFunctions& functions, const Numerics& numerics) {
  auto own = call;
  own.arguments = plain_arguments(call, numerics);
  Differentiable peer{
      own, {}, placed(functions, [&](const at::Tensor& weight) { return into_domain(numerics.domain, weight); })};
  for (size_t i = 0; i < own.slots.size(); ++i) peer.leaves.push_back(as_leaf(own.tensor(i)));
  return peer.gradients();
}

/// Random ops: their own gradients on a mesh of one rank.
std::vector<at::Tensor> one_rank_gradients(const OpCall& call, const LinearFunctions& functions,
                                           const Numerics& numerics) {
  World::Options options;
  options.domain = numerics.domain;
  const auto world = simulated_world({{"one", 1}}, std::move(options));
  const auto& mesh = world->mesh("one=1");
  const MeshScope scope(mesh);
  const Place place = [&](const at::Tensor& plain) { return distribute(plain, Layout::replicated(mesh)); };
  std::vector<at::Tensor> operands, results;
  for (size_t i = 0; i < call.slots.size(); ++i) operands.push_back(place(call.tensor(i)));
  for (const auto& gradient : sharded_gradients(call, operands, functions, place))
    results.push_back(gradient.defined() ? gather(gradient) : gradient);
  return results;
}

}  // namespace

std::vector<at::Tensor> draw_weights(const std::vector<at::Tensor>& results) {
  Inputs inputs(c10::kFloat, false);
  std::vector<at::Tensor> weights;
  for (const auto& result : results) weights.push_back(inputs.tensor(result.sizes().vec()));
  return weights;
}

std::vector<at::Tensor> sharded_gradients(const OpCall& call, const std::vector<at::Tensor>& operands,
                                          const LinearFunctions& functions, const Place& place) {
  Differentiable ours{call, {}, placed(functions, place)};
  for (const auto& operand : operands) ours.leaves.push_back(as_leaf(operand));
  return ours.gradients();
}

std::vector<at::Tensor> reference_gradients(const OpCase& op_case, const OpCall& call, const LinearFunctions& functions,
                                            const Numerics& numerics) {
  return op_case.is(OpCase::kOwnPeer) ? one_rank_gradients(call, functions, numerics)
                                      : plain_gradients(call, functions, numerics);
}

std::string gradient_difference(const at::Tensor& actual, const at::Tensor& expected, c10::IntArrayRef sizes,
                                const Numerics& numerics) {
  const auto zeros = at::zeros(sizes, at::kDouble);
  if (!actual.defined() && (!expected.defined() || at::equal(expected, zeros))) return {};
  if (!actual.defined()) return "is missing";
  return difference(actual, expected.defined() ? expected : zeros, numerics, true);
}

}  // namespace lockstep::testing
