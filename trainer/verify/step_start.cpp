#include "trainer/verify/step_start.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "runtime/plain/lazy_copy.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

template <class Visit>
void for_each_tensor(const TrainingState& state, const Visit& visit) {
  size_t next = 0;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors()) visit(next++, sharded(tensor).shards()->whole()[0].detach());
}

}  // namespace

void StepStart::note(const TrainingState& state, int64_t step, const TokenBatch& batch, double learning_rate) {
  const PlainTensors guard;
  if (steps_.size() == kStepsPerCopy) steps_.clear();
  if (steps_.empty())
    for_each_tensor(state, [&](size_t t, const at::Tensor& value) {
      if (t == copy_.size()) copy_.push_back(at::empty_like(value));
      copy_[t].copy_(value);
    });
  steps_.push_back({step, batch, learning_rate});
}

void StepStart::restore(TrainingRun& run) const {
  LOCKSTEP_CHECK(!steps_.empty());
  {
    const PlainTensors guard;
    for_each_tensor(run.state(), [&](size_t t, at::Tensor value) { before_write(value), value.copy_(copy_.at(t)); });
  }
  for (size_t s = 0; s + 1 < steps_.size(); ++s) run.step(steps_[s].number, steps_[s].batch, steps_[s].learning_rate);
}

}  // namespace lockstep::trainer
