#include "trainer/optim/parameter_state.h"

#include "core/error.h"

namespace lockstep::trainer {

const at::Tensor& ParameterState::slot(std::string_view slot_name) const {
  for (const auto& each : slots)
    if (each.name == slot_name) return each.tensor;
  fail<InternalError>("{} has no slot {}", name, slot_name);
}

std::vector<StateTensor> ParameterState::tensors() const {
  std::vector<StateTensor> all{{"", value}};
  for (const auto& each : slots) all.push_back({fmt::format("{}{}.", kOptimizerPrefix, each.name), each.tensor});
  return all;
}

}  // namespace lockstep::trainer
