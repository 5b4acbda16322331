#pragma once
#include <ATen/core/ivalue.h>

#include <vector>

#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "runtime/planning/plan.h"

namespace lockstep {

/// One device beside a run, for single ops: each runs once more on it, whole, through the same dispatch with the
/// built-in rules, and draws what it drew.
class OneDevice {
 public:
  /// With the numerics of `run`, in `domain`.
  OneDevice(const World& run, Domain domain);
  OneDevice(const OneDevice&) = delete;
  OneDevice& operator=(const OneDevice&) = delete;

  /// What the op of `event` gives, or writes, whole: one tensor for each of op_results(), views included. `operands`:
  /// the whole values of its sharded operands, as plain tensors, in the order of sharded_operands(); copied. To be
  /// called in after_op(). Throws what LibTorch and the rules throw.
  std::vector<at::Tensor> run(const OpEvent& event, const std::vector<at::Tensor>& operands);

 private:
  at::Tensor placed(const at::Tensor& operand, const at::Tensor& whole) const;
  at::Tensor placed_rows(const at::Tensor& operand, const at::Tensor& whole) const;

  World world_;
  const Mesh& mesh_;
};

/// A sharded operand of an op, and where it stands.
struct ShardedOperand {
  Slot slot;
  at::Tensor tensor;
};
std::vector<ShardedOperand> sharded_operands(std::span<const c10::IValue> arguments);

}  // namespace lockstep
