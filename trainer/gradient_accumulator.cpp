#include "trainer/gradient_accumulator.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "core/error.h"
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

GradientAccumulator::GradientAccumulator(std::vector<at::Tensor> parameters, int64_t microbatches, Numerics numerics)
    : parameters_(std::move(parameters)),
      tree_(SumTree::over_samples(microbatches)),
      numerics_(numerics),
      sums_(parameters_.size()),
      joiners_(parameters_.size(), SumJoiner<at::Tensor>(tree_)) {
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

std::vector<at::Tensor> GradientAccumulator::zeros_or(const std::vector<at::Tensor>& gradients) const {
  auto result = gradients;
  for (size_t p = 0; p < result.size(); ++p)
    if (!result[p].defined()) result[p] = at::zeros_like(parameters_[p]);
  return result;
}

std::vector<Layout> GradientAccumulator::layouts() const {
  std::vector<Layout> result;
  for (const auto& parameter : parameters_) result.push_back(layout_of(parameter));
  return result;
}

void GradientAccumulator::end_microbatch() {
  if (numerics_ == Numerics::kNative) return;
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  const auto gradients = redistribute_bucket(zeros_or(sums_), layouts());
  for (size_t p = 0; p < gradients.size(); ++p)
    joiners_[p].add({0, microbatch_}, gradients[p],
                    [](const at::Tensor& left, const at::Tensor& right) { return at::add(left, right); });
  sums_.assign(parameters_.size(), {});
  ++microbatch_;
}

std::vector<at::Tensor> GradientAccumulator::finish() {
  const PhaseScope phase(Phase::kReduce);
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  if (numerics_ == Numerics::kNative) {
    gradients = redistribute_bucket(zeros_or(sums_), layouts());
  } else {
    for (auto& joiner : joiners_) {
      LOCKSTEP_CHECK(joiner.is_complete(), "{} of {} microbatches ended", microbatch_, tree_.size);
      gradients.push_back(std::move(joiner.parts()[0].value));
      joiner.parts().clear();
    }
  }
  sums_.assign(parameters_.size(), {});
  microbatch_ = 0;
  return gradients;
}

}  // namespace lockstep::trainer
