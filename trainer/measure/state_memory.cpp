#include "trainer/measure/state_memory.h"

#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

int64_t bytes_here(const at::Tensor& tensor) {
  int64_t bytes = 0;
  for (const auto& shard : sharded(tensor).shards()->whole()) bytes += static_cast<int64_t>(shard.nbytes());
  return bytes;
}

/// It lies as the slots do; those may be of another dtype.
int64_t bytes_of_gradient(const ParameterState& entry) {
  const auto& slot = entry.slots[0].tensor;
  return bytes_here(slot) / static_cast<int64_t>(slot.element_size()) *
         static_cast<int64_t>(entry.value.element_size());
}

}  // namespace

StateMemory memory_of(const TrainingState& state) {
  StateMemory memory;
  for (const auto& entry : state) {
    const auto value = bytes_here(entry.value);
    memory.parameters += value;
    if (entry.trainable) memory.gradients += entry.slots.empty() ? value : bytes_of_gradient(entry);
    for (const auto& slot : entry.slots) memory.optimizer += bytes_here(slot.tensor);
  }
  return memory;
}

}  // namespace lockstep::trainer
