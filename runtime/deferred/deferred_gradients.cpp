#include "runtime/deferred/deferred_gradients.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <utility>

#include "runtime/context/scopes.h"

namespace lockstep {
namespace {

thread_local DeferredGradients* current_gradients = nullptr;

}  // namespace

DeferredGradients::Scope::Scope(DeferredGradients& gradients)
    : gradients_(gradients), previous_(std::exchange(current_gradients, &gradients)) {}
DeferredGradients::Scope::~Scope() {
  current_gradients = previous_;
  gradients_.allowed_.clear();
}

void DeferredGradients::allow(const at::Tensor& weight, size_t number) {
  allowed_.emplace(weight.unsafeGetTensorImpl(), Allowed{weight, number});
}

bool DeferredGradients::may_wait(const at::Tensor& weight) {
  return current_gradients && current_gradients->allowed_.contains(weight.unsafeGetTensorImpl());
}

void DeferredGradients::put_off(const at::Tensor& weight, Gradient gradient) {
  const auto& context = RunContext::current();
  const size_t number = current_gradients->allowed_.at(weight.unsafeGetTensorImpl()).number;
  current_gradients->put_off_.push_back({number, std::move(gradient), context.module(), context.rows()});
}

std::vector<size_t> DeferredGradients::waiting() const {
  std::vector<size_t> numbers;
  for (const auto& each : put_off_) numbers.push_back(each.number);
  return numbers;
}

void DeferredGradients::run_first(const std::function<void(const at::Tensor&)>& take) {
  auto first = std::move(put_off_.front());
  put_off_.pop_front();
  const ModuleScope module_scope(first.module);
  const BatchScope batch_scope(first.rows);
  at::Tensor gradient;
  {
    const at::AutoDispatchBelowAutograd below;
    gradient = std::exchange(first.gradient, {})();
  }
  take(gradient);
}

}  // namespace lockstep
