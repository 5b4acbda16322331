#include "trainer/sharding/activation_checkpoint.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "trainer/gradients/taken_gradient.h"

namespace lockstep::trainer {
namespace {

using Forward = std::function<at::Tensor(const at::Tensor&)>;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Keeps the function alive in the context.
struct Held : torch::CustomClassHolder {
  Held(Forward f, std::optional<KeptMaps> kept) : forward(std::move(f)) {
    if (kept) results.emplace(*kept);
  }
  /// The first run keeps, the second is given.
  at::Tensor run(const at::Tensor& input, bool again) {
    std::optional<KeptResults::Scope> scope;
    if (results) scope.emplace(*results, again);
    auto output = forward(input);
    LOCKSTEP_CHECK(!again || !results || results->empty(), "the second run of a block had fewer ops than the first");
    return output;
  }

  Forward forward;
  std::optional<KeptResults> results;  ///< none: all runs again
};

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& input, c10::intrusive_ptr<Held> held) {
    context->save_for_backward({input});
    context->saved_data["held"] = c10::IValue::make_capsule(held);
    const at::NoGradGuard no_grad;
    return held->run(input, /*again=*/false);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto held = c10::static_intrusive_pointer_cast<Held>(context->saved_data["held"].toCapsule());
    const auto input = context->get_saved_variables()[0].tensor_data().requires_grad_();
    at::Tensor output;
    {
      const PhaseScope phase(Phase::kRecompute);
      const at::AutoGradMode with_grad(true);
      output = held->run(input, /*again=*/true);
    }
    const auto gradient = taken_gradient(input);
    torch::autograd::backward({output}, {gradients[0]});
    return {*gradient, {}};
  }
};

}  // namespace

/// The block may train though what it is given does not: a node of the graph needs an input that asks for gradients.
at::Tensor checkpointed(const Forward& forward, const at::Tensor& input, std::optional<KeptMaps> kept) {
  auto held = c10::make_intrusive<Held>(forward, kept);
  if (at::GradMode::is_enabled() && !input.requires_grad()) {
    const auto asking = input.tensor_data().requires_grad_();
    taken_gradient(asking);  // and nobody has it
    return Checkpoint::apply(asking, std::move(held));
  }
  return Checkpoint::apply(input, std::move(held));
}

}  // namespace lockstep::trainer
