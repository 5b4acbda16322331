#include "trainer/optim/optimizer.h"

#include <ATen/Functions.h>

#include "runtime/plain/pinned.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/job/job.h"
#include "trainer/job/offered_names.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/lion.h"
#include "trainer/optim/muon.h"
#include "trainer/optim/ranger21.h"
#include "trainer/optim/sgd.h"
#include "trainer/optim/weight_average.h"

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

double rate_of(const ParameterState& parameter, std::span<const StepScalar> scalars) {
  return value_of(scalars, "learning_rate") * parameter.settings.lr_factor;
}

double weight_decay_of(const OptimizerSection& settings, const ParameterState& parameter) {
  if (parameter.settings.weight_decay) return *parameter.settings.weight_decay;
  return settings.decay_1d || parameter.value.dim() >= 2 ? settings.weight_decay : 0;
}

double bias_correction(double beta, int64_t step) {
  double power = 1;
  for (int64_t i = 0; i < step; ++i) power *= beta;
  return 1 - power;
}

namespace {

/// Zeros.
at::Tensor in_host_memory(const at::Tensor& slot) {
  const PlainTensors guard;
  Shards shards;
  for (const auto& shard : sharded(slot).shards()->whole())
    shards.push_back(shard.is_cuda() ? pinned_tensor(shard.sizes(), shard.scalar_type()).zero_() : shard);
  return make_sharded(&spec_of(slot), std::move(shards));
}

}  // namespace

std::vector<OptimizerSlot> new_slots(const Optimizer& optimizer, const ParameterState& parameter, bool offload) {
  std::vector<OptimizerSlot> slots;
  for (const auto& kind : optimizer.slots(parameter)) {
    if (kind.dtype) LOCKSTEP_CHECK(is_held_by_float32(*kind.dtype), "slot {} is {}", kind.name, toString(*kind.dtype));
    auto slot = kind.dtype ? at::zeros_like(parameter.value, *kind.dtype) : at::zeros_like(parameter.value);
    if (kind.follows_value) slot.copy_(parameter.value);
    if (offload && kind.may_be_offloaded) slot = in_host_memory(slot);
    slots.push_back({kind.name, slot, kind.follows_value});
  }
  return slots;
}

Registry<OptimizerBuilder>& optimizer_registry() {
  static Registry<OptimizerBuilder> all("optimizer.name", kOptimizerNames,
                                        {{"AdamW", make_adamw},
                                         {"Adam", make_adam},
                                         {"SGD", make_sgd},
                                         {"Lion", make_lion},
                                         {"Muon", make_muon},
                                         {"Ranger21", make_ranger21}});
  return all;
}

std::unique_ptr<Optimizer> make_optimizer(const Job& job) {
  auto optimizer = optimizer_registry().at(job.optimizer.name)(job);
  return job.optimizer.ema_decay ? with_average(std::move(optimizer), *job.optimizer.ema_decay) : std::move(optimizer);
}

}  // namespace lockstep::trainer
