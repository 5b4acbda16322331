#include "trainer/gradient_accumulator.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "runtime/op_id.h"
#include "runtime/redistribute.h"
#include "runtime/sharded_tensor.h"

namespace lockstep::trainer {

/// Runs after autograd has put a parameter's gradient into `.grad`.
struct GradientAccumulator::Hook : torch::autograd::PostAccumulateGradHook {
  Hook(GradientAccumulator& owner, size_t parameter) : owner_(owner), parameter_(parameter) {}
  void operator()(const torch::autograd::Variable&) override { owner_.take(parameter_); }

 private:
  GradientAccumulator& owner_;
  size_t parameter_;
};

GradientAccumulator::GradientAccumulator(std::vector<at::Tensor> parameters)
    : parameters_(std::move(parameters)), sums_(parameters_.size()) {
  for (size_t p = 0; p < parameters_.size(); ++p)
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[p], std::make_unique<Hook>(*this, p));
}

GradientAccumulator::~GradientAccumulator() {
  for (const auto& parameter : parameters_) torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
}

void GradientAccumulator::take(size_t parameter) {
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  auto& gradient = parameters_[parameter].mutable_grad();
  auto& sum = sums_[parameter];
  sum = sum.defined() ? at::add(sum, gradient) : gradient;
  gradient = at::Tensor();
}

std::vector<at::Tensor> GradientAccumulator::finish() {
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  std::vector<Layout> layouts;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    if (!sums_[p].defined()) sums_[p] = at::zeros_like(parameters_[p]);
    layouts.push_back(layout_of(parameters_[p]));
  }
  auto gradients = redistribute_bucket(sums_, layouts);
  sums_.assign(parameters_.size(), {});
  return gradients;
}

}  // namespace lockstep::trainer
