#include "trainer/state/adapters.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/error.h"
#include "models/layers.h"
#include "runtime/context/scopes.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/optim/parameter_settings.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kTargets = "lora.targets";

std::vector<models::Linear*> linears_of(models::Model& model) {
  std::vector<models::Linear*> all;
  for (auto* module : model.modules())
    if (auto* linear = dynamic_cast<models::Linear*>(module)) all.push_back(linear);
  return all;
}

void require_all_fit(const LoraSection& lora, const std::vector<models::Linear*>& linears) {
  if (linears.empty()) fail<BadInput>("lora.rank is {}, but the model has no linear weights.", lora.rank);
  for (const auto& pattern : lora.targets) {
    std::vector<std::string> names;
    for (auto* linear : linears)
      for (const auto& part : linear->weight().division().parts()) names.push_back(part.name);
    if (std::none_of(linears.begin(), linears.end(),
                     [&](auto* linear) { return holds(kTargets, pattern, linear->weight()); }))
      fail<BadInput>("{}: \"{}\" fits no linear weight.{}", kTargets, pattern, nearest_names(pattern, names));
  }
}

}  // namespace

void attach_adapters(models::Model& model, const LoraSection& lora) {
  if (!lora.enabled()) return;
  const auto linears = linears_of(model);
  require_all_fit(lora, linears);
  for (auto* parameter : model.parameters()) parameter->freeze();
  for (auto* linear : linears)
    if (std::any_of(lora.targets.begin(), lora.targets.end(),
                    [&](const auto& pattern) { return holds(kTargets, pattern, linear->weight()); }))
      linear->adapt({lora.rank, lora.alpha, lora.dropout, lora.dora});
}

void start_magnitudes(models::Model& model, TrainingState& state) {
  const PhaseScope phase(Phase::kInit);
  const at::NoGradGuard no_grad;
  for (auto* linear : linears_of(model)) {
    auto* magnitude = linear->change() ? linear->change()->magnitude() : nullptr;
    if (!magnitude) continue;
    const auto entry =
        std::find_if(state.begin(), state.end(), [&](const auto& each) { return each.name == magnitude->name(); });
    LOCKSTEP_CHECK(entry != state.end(), "{}", magnitude->name());
    const auto lengths = models::row_lengths(linear->weight().tensor());
    entry->value.copy_(redistribute(lengths, layout_of(entry->value)));
  }
}

}  // namespace lockstep::trainer
