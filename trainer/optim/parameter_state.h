#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/division.h"

namespace lockstep::trainer {

/// A tensor that an optimizer keeps for a parameter.
struct OptimizerSlot {
  std::string name;  ///< "mean"
  at::Tensor tensor;
  bool follows_value = false;  ///< mixed of the parameter's values, and as exact as those are
};

/// Names of optimizer state in checkpoints and recordings begin with it: "optimizer.mean.norm.weight".
inline constexpr std::string_view kOptimizerPrefix = "optimizer.";

/// One of the tensors of a parameter's state.
struct StateTensor {
  std::string prefix;  ///< of its names in checkpoints and recordings: "", "optimizer.mean."
  at::Tensor tensor;
};

/// What of a parameter's update is its own (`[[optimizer.groups]]`, parameter_settings.h).
struct ParameterSettings {
  double lr_factor = 1;                     ///< the learning rate is multiplied by it
  std::optional<double> weight_decay = {};  ///< none: the optimizer's
  bool muon = false;                        ///< Muon makes its updates orthogonal
};

/// A parameter in its stored layout and its optimizer state in its update_layout(): the same, if replicas share
/// nothing.
struct ParameterState {
  std::string name;
  at::Tensor value;
  bool trainable = true;             ///< false: no step changes it, and no optimizer keeps anything for it
  std::vector<OptimizerSlot> slots;  ///< in the optimizer's order
  models::Division division;         ///< the tensors that it is stored as
  ParameterSettings settings = {};
  bool is_adapter = false;  ///< of [lora]: weights that a run begins with need not have it

  /// REQUIRES: there is a slot of this name.
  const at::Tensor& slot(std::string_view slot_name) const;

  /// The value, then the slots in their order: what digests, checkpoints, recordings and comparisons go by.
  std::vector<StateTensor> tensors() const;
};

/// Everything that a step changes.
using TrainingState = std::vector<ParameterState>;

}  // namespace lockstep::trainer
