#include "trainer/state/float32_parameters.h"

#include <set>

#include "core/error.h"
#include "models/layers.h"
#include "trainer/optim/parameter_settings.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kKey = "training.mixed_precision_float32";

void require_not_quantized(const models::Module& module, const std::string& pattern) {
  const auto* linear = dynamic_cast<const models::Linear*>(&module);
  if (linear && linear->quantization())
    fail<BadInput>(
        "{}: \"{}\" fits {}, whose factors model.converters quantises. Name it in filter_fqns, too, or choose another "
        "pattern.",
        kKey, pattern, module.path());
}

using Modules = std::set<const models::Module*>;

Modules owners_of(const std::vector<models::Parameter*>& parameters, const std::string& pattern) {
  Modules owners;
  std::vector<std::string> names;
  for (const auto* parameter : parameters) {
    names.push_back(name_of(*parameter));
    if (!holds(kKey, pattern, *parameter)) continue;
    require_not_quantized(parameter->owner(), pattern);
    owners.insert(&parameter->owner());
  }
  if (owners.empty()) fail<BadInput>("{}: \"{}\" fits no parameter.{}", kKey, pattern, nearest_names(pattern, names));
  return owners;
}

}  // namespace

void keep_in_float32(models::Model& model, const Job& job) {
  const auto& patterns = job.training.mixed_precision_float32;
  if (patterns.empty()) return;
  if (job.lora.enabled())
    fail<BadInput>("{} and lora.rank {}: changes of low rank compute in the type of what they change; leave one out.",
                   kKey, job.lora.rank);
  const auto parameters = model.parameters();
  for (const auto& pattern : patterns) {
    const auto owners = owners_of(parameters, pattern);
    for (auto* parameter : parameters)
      if (owners.contains(&parameter->owner()) && !parameter->is_buffer()) parameter->compute_in_float32();
  }
}

}  // namespace lockstep::trainer
