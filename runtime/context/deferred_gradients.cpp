#include "runtime/context/deferred_gradients.h"

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

at::Tensor DeferredGradients::now_or_later(const at::Tensor& weight, Gradient gradient) {
  auto* const all = current_gradients;
  const auto found = all ? all->allowed_.find(weight.unsafeGetTensorImpl()) : decltype(allowed_)::iterator();
  if (!all || found == all->allowed_.end()) return gradient();
  const auto& context = RunContext::current();
  all->put_off_.push_back({found->second.number, std::move(gradient), context.module(), context.rows()});
  return {};
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
