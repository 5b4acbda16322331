#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "runtime/context/observer.h"

namespace lockstep {

/// A sharded tensor that an op gave.
struct OpResult {
  at::Tensor tensor;
  bool is_alias = false;  ///< it shares an operand's bytes: the op computed nothing
};

/// What an observed op gave: its results, or whatever it wrote in place, after the op.
std::vector<OpResult> op_results(const OpEvent& event, std::span<const c10::IValue> results);

}  // namespace lockstep
