#pragma once
#include <vector>

#include "consistency/ops/taken_operands.h"

namespace lockstep {

/// "layers.1.attention.wo.weight, mesh::adamw #0": an op of the optimizer, on any mesh and in any number of
/// microbatches.
std::string text_of_update(const OpId& id);

/// Makes a run that stores doubles round as one that stores what tensors declare might at worst: to each element of an
/// op's result it adds or takes off what the op's bound allows it (rounding.h). The signs are a function of the op's id
/// and the element. What comes of it shows how far roundings of that size, in any direction, move what a step gives.
/// REQUIRES: one device, native numerics.
class Roundings final : public Observer {
 public:
  void before_op(const OpEvent& event) override;
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override;

  int64_t rounded_values() const { return rounded_values_; }
  /// The ops of the optimizer that it saw, in their order.
  const std::vector<std::string>& updates() const { return updates_; }

 private:
  struct Begun {
    std::string id;
    TakenOperands operands;
  };
  std::vector<Begun> begun_;  ///< ops may nest
  int64_t rounded_values_ = 0;
  std::vector<std::string> updates_;
};

}  // namespace lockstep
