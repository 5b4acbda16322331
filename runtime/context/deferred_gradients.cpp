#include "runtime/context/deferred_gradients.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include "runtime/context/scopes.h"

namespace lockstep {
namespace {

thread_local DeferredGradients* current_gradients = nullptr;

}  // namespace

DeferredGradients::Scope::Scope(DeferredGradients& gradients)
    : previous_(std::exchange(current_gradients, &gradients)) {}
DeferredGradients::Scope::~Scope() { current_gradients = previous_; }

void DeferredGradients::allow(const at::Tensor& weight) { allowed_.emplace(weight.unsafeGetTensorImpl(), weight); }

at::Tensor DeferredGradients::now_or_later(const at::Tensor& weight, Gradient gradient) {
  auto* const all = current_gradients;
  if (!all || !all->allowed_.contains(weight.unsafeGetTensorImpl())) return gradient();
  const auto& context = RunContext::current();
  all->put_off_.push_back({weight, std::move(gradient), context.module(), context.rows()});
  return {};
}

std::vector<std::pair<at::Tensor, at::Tensor>> DeferredGradients::run() {
  const at::AutoDispatchBelowAutograd below;
  std::vector<std::pair<at::Tensor, at::Tensor>> gradients;
  for (auto& [weight, gradient, module, rows] : std::exchange(put_off_, {})) {
    const ModuleScope module_scope(module);
    const BatchScope batch_scope(rows);
    gradients.emplace_back(weight, gradient());
    gradient = nullptr;  // what it holds goes as soon as it can
  }
  return gradients;
}

}  // namespace lockstep
