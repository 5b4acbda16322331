// Gradients of ops on sharded tensors against LibTorch's autograd in float64.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>

#include <algorithm>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_trial.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::testing {
namespace {

/// A call on leaves that ask for gradients, and weights of the linear function of its results.
struct Differentiable {
  const OpCall& call;
  std::vector<at::Tensor> leaves;   ///< per slot
  std::vector<at::Tensor> weights;  ///< per result

  /// Gradients of the floating leaves; zeros where LibTorch gives none.
  std::vector<at::Tensor> gradients(const Stack& arguments) const {
    const auto results = run(call.op, arguments);
    at::Tensor total;
    for (size_t r = 0; r < results.size(); ++r) {
      if (!results[r].requires_grad()) continue;
      const auto part = at::sum(at::mul(results[r], weights[r]));
      total = total.defined() ? total + part : part;
    }
    if (total.defined()) total.backward();
    std::vector<at::Tensor> gradients;
    for (const auto& leaf : leaves) gradients.push_back(leaf.grad());
    return gradients;
  }
};

at::Tensor as_leaf(const at::Tensor& tensor) {
  auto leaf = tensor.detach();
  return leaf.is_floating_point() ? leaf.requires_grad_() : leaf;
}

}  // namespace

std::vector<at::Tensor> draw_weights(const std::vector<at::Tensor>& results) {
  Inputs inputs(c10::kFloat, false);
  std::vector<at::Tensor> weights;
  for (const auto& result : results) weights.push_back(inputs.tensor(result.sizes().vec()));
  return weights;
}

namespace {

/// The whole computation on plain doubles.
std::vector<at::Tensor> plain_gradients(const OpCall& call, const std::vector<at::Tensor>& weights,
                                        const Numerics& numerics) {
  Differentiable peer{call, {}, weights};
  auto arguments = plain_arguments(call, numerics);
  for (const auto& slot : call.slots) {
    peer.leaves.push_back(as_leaf(tensor_in(arguments, slot)));
    set_slot(arguments, slot, peer.leaves.back());
  }
  for (auto& weight : peer.weights) weight = into_domain(numerics.domain, weight);
  return peer.gradients(arguments);
}

}  // namespace

std::vector<at::Tensor> sharded_gradients(const OpCall& call, const std::vector<at::Tensor>& operands,
                                          const std::vector<at::Tensor>& weights, const Place& place) {
  Differentiable ours{call, {}, {}};
  for (const auto& operand : operands) ours.leaves.push_back(as_leaf(operand));
  for (const auto& weight : weights) ours.weights.push_back(place(weight));
  return ours.gradients(with_tensors(call, ours.leaves));
}

namespace {

/// Random ops: their own gradients on a mesh of one rank.
std::vector<at::Tensor> one_rank_gradients(const OpCall& call, const std::vector<at::Tensor>& weights,
                                           const Numerics& numerics) {
  World::Options options;
  options.domain = numerics.domain;
  const auto world = simulated_world({{"one", 1}}, std::move(options));
  const auto& mesh = world->mesh("one=1");
  const MeshScope scope(mesh);
  const Place place = [&](const at::Tensor& plain) { return distribute(plain, Layout::replicated(mesh)); };
  std::vector<at::Tensor> operands, results;
  for (size_t i = 0; i < call.slots.size(); ++i) operands.push_back(place(call.tensor(i)));
  for (const auto& gradient : sharded_gradients(call, operands, weights, place))
    results.push_back(gradient.defined() ? gather(gradient) : gradient);
  return results;
}

void compare(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& operand, const Numerics& numerics,
             const std::string& line) {
  const auto zeros = at::zeros(operand.sizes(), at::kDouble);
  if (!actual.defined() && (!expected.defined() || at::equal(expected, zeros))) return;
  if (!actual.defined()) RC_FAIL(line + " is missing");
  const auto what = difference(actual, expected.defined() ? expected : zeros, numerics, true);
  if (!what.empty()) RC_FAIL(line + " " + what);
}

}  // namespace

std::vector<at::Tensor> reference_gradients(const OpCase& op_case, const OpCall& call,
                                            const std::vector<at::Tensor>& weights, const Numerics& numerics) {
  return op_case.is(OpCase::kOwnPeer) ? one_rank_gradients(call, weights, numerics)
                                      : plain_gradients(call, weights, numerics);
}

void gradients_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const auto narrow = op_case.is(OpCase::kWide) ? c10::kFloat : c10::kBFloat16;
  const Numerics numerics{*rc::gen::element(c10::kFloat, c10::kDouble, narrow), false, Domain::kFloat64};
  Inputs inputs(numerics.dtype, false);
  const auto call = make_call(op_case.called, op_case.draw(inputs));
  const auto weights = draw_weights(reference(op_case, call, numerics));
  const auto expected = reference_gradients(op_case, call, weights, numerics);
  const DrawnMesh drawn(numerics.domain, rules, false);
  std::vector<at::Tensor> operands;
  for (size_t i = 0; i < call.slots.size(); ++i)
    operands.push_back(scatter(call.tensor(i), draw_layout(*drawn.mesh, call.tensor(i))));
  const auto line = describe(call, operands, *drawn.mesh, numerics);
  const MeshScope scope(*drawn.mesh);  // formulas make constants
  std::vector<at::Tensor> actual;
  try {
    actual = sharded_gradients(call, operands, weights, [&](const at::Tensor& plain) {
      return scatter(plain, draw_layout(*drawn.mesh, plain));
    });
  } catch (const c10::Error& error) {
    RC_FAIL(line + ": " + error.what_without_backtrace());
  } catch (const std::exception& error) {
    RC_FAIL(line + ": " + error.what());
  }
  if (std::ranges::any_of(expected, [](const at::Tensor& gradient) { return gradient.defined(); }))
    ++compared_cases()[op_case.op];
  for (size_t i = 0; i < actual.size(); ++i)
    compare(actual[i], expected[i], call.tensor(i), numerics, fmt::format("{}: gradient {}", line, i));
}

}  // namespace lockstep::testing
