#include "trainer/state/float32_parameters.h"

#include <set>

#include "core/error.h"
#include "models/layers.h"
#include "trainer/optim/parameter_settings.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kKey = "training.mixed_precision_float32";

/// Of a job's converters they are refused; weights that are rounded for generation stand for those that were trained.
bool is_quantized(const models::Module& module, const std::string& pattern, const Job& job) {
  const auto* linear = dynamic_cast<const models::Linear*>(&module);
  if (!linear || !linear->quantization()) return false;
  if (!job.model.converters.empty())
    fail<BadInput>(
        "{}: \"{}\" fits {}, whose factors are quantised. Name it in filter_fqns of what quantises it "
        "(model.converters), too, or choose another pattern.",
        kKey, pattern, module.path());
  return true;
}

using Modules = std::set<const models::Module*>;

Modules owners_of(const std::vector<models::Parameter*>& parameters, const std::string& pattern, const Job& job) {
  Modules owners;
  std::vector<std::string> names;
  bool fits_any = false;
  for (const auto* parameter : parameters) {
    if (parameter->is_buffer()) continue;
    names.push_back(name_of(*parameter));
    if (!holds(kKey, pattern, *parameter)) continue;
    fits_any = true;
    if (!is_quantized(parameter->owner(), pattern, job)) owners.insert(&parameter->owner());
  }
  if (!fits_any) fail<BadInput>("{}: \"{}\" fits no parameter.{}", kKey, pattern, nearest_names(pattern, names));
  return owners;
}

}  // namespace

void keep_in_float32(models::Model& model, const Job& job) {
  const auto& patterns = job.training.mixed_precision_float32;
  if (patterns.empty()) return;
  if (job.training.mixed_precision_param == "float32")
    fail<BadInput>(
        "{} is about parameters beside those that compute in 16 bits; training.mixed_precision_param is "
        "\"float32\". Leave it out or choose bfloat16.",
        kKey);
  if (job.lora.enabled())
    fail<BadInput>("{} and lora.rank {}: changes of low rank compute in the type of what they change; leave one out.",
                   kKey, job.lora.rank);
  const auto parameters = model.parameters();
  for (const auto& pattern : patterns) {
    const auto owners = owners_of(parameters, pattern, job);
    for (auto* parameter : parameters)
      if (owners.contains(&parameter->owner()) && !parameter->is_buffer()) parameter->compute_in_float32();
  }
}

}  // namespace lockstep::trainer
