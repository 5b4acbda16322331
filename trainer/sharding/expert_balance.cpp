#include "trainer/sharding/expert_balance.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/context/run_context.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor sum_of(const std::map<int64_t, Tensor>& counts) {
  Tensor sum;
  for (const auto& [microbatch, each] : counts) sum = sum.defined() ? at::add(sum, each) : each;
  return sum;
}

/// Of [count] choices, whole on every rank.
Tensor change_of(const Tensor& counts, double rate) {
  const int64_t experts = counts.size(0);
  const auto below = at::sign(at::sub(at::sum(counts), at::mul(counts, experts)));  // integers: no rounding decides
  const auto mean = at::div(at::sum(below).to(c10::kDouble), experts);
  return at::mul(at::sub(below.to(c10::kDouble), mean), rate);
}

struct WithLosses : torch::autograd::Function<WithLosses> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& losses, double weight) {
    context->save_for_backward({at::full_like(losses, weight)});
    return x.detach();
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0], context->get_saved_variables()[0], {}};
  }
};

}  // namespace

ExpertBalance::Layer& ExpertBalance::layer_of(const models::Parameter& bias, double rate) {
  const auto found = std::ranges::find(layers_, &bias, &Layer::bias);
  return found != layers_.end() ? *found : layers_.emplace_back(Layer{&bias, rate, {}});
}

void ExpertBalance::add(const models::Parameter& bias, const Tensor& counts, double rate) {
  layer_of(bias, rate).counts[RunContext::current().microbatch()] = counts;
}

void ExpertBalance::finish() {
  const at::NoGradGuard no_grad;
  if (layers_.empty()) return;
  std::vector<Tensor> sums;
  for (const auto& layer : layers_) {
    const ModuleScope scope(layer.bias->name());
    sums.push_back(sum_of(layer.counts));
  }
  const auto whole = Layout::replicated(layout_of(sums[0]).mesh());
  {
    const ModuleScope module(layers_[0].bias->name());  // stages count by themselves: one's ranks replay alone
    const CommunicationScope scope(whole.mesh().world(), "expert_counts");
    sums = redistribute_bucket(sums, std::vector<Layout>(sums.size(), whole));
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    const ModuleScope scope(layers_[i].bias->name());
    at::Tensor(layers_[i].bias->tensor()).add_(change_of(sums[i], layers_[i].rate));
  }
  layers_.clear();
}

Tensor with_gradient_of(const Tensor& x, const Tensor& losses, double weight) {
  return WithLosses::apply(x, losses, weight);
}

}  // namespace lockstep::trainer
