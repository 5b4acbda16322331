#include "trainer/optim/optimizer.h"

#include <ATen/Functions.h>

#include "trainer/job/job.h"
#include "trainer/job/offered_names.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/sgd.h"

namespace lockstep::trainer {
namespace {

bool is_held_by_float32(c10::ScalarType dtype) {
  return dtype == c10::kFloat || dtype == c10::kBFloat16 || dtype == c10::kHalf;
}

}  // namespace

double value_of(std::span<const StepScalar> scalars, std::string_view name) {
  for (const auto& scalar : scalars)
    if (scalar.name == name) return scalar.value;
  fail<InternalError>("the step has no scalar {}", name);
}

double weight_decay_of(const OptimizerSection& settings, const ParameterState& parameter) {
  return settings.decay_1d || parameter.value.dim() >= 2 ? settings.weight_decay : 0;
}

std::vector<OptimizerSlot> new_slots(const Optimizer& optimizer, const at::Tensor& value) {
  std::vector<OptimizerSlot> slots;
  for (const auto& kind : optimizer.slots()) {
    if (kind.dtype) LOCKSTEP_CHECK(is_held_by_float32(*kind.dtype), "slot {} is {}", kind.name, toString(*kind.dtype));
    slots.push_back({kind.name, kind.dtype ? at::zeros_like(value, *kind.dtype) : at::zeros_like(value)});
  }
  return slots;
}

Registry<OptimizerBuilder>& optimizer_registry() {
  static Registry<OptimizerBuilder> all("optimizer.name", kOptimizerNames, {{"AdamW", make_adamw}, {"SGD", make_sgd}});
  return all;
}

std::unique_ptr<Optimizer> make_optimizer(const Job& job) { return optimizer_registry().at(job.optimizer.name)(job); }

}  // namespace lockstep::trainer
