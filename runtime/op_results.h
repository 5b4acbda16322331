#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "runtime/observer.h"

namespace lockstep {

/// A sharded tensor that an op gave.
struct OpResult {
  at::Tensor tensor;
  bool is_alias = false;  ///< it shares an operand's bytes: the op computed nothing
};

/// Whether the op writes its argument number `a` in place.
bool is_written(const c10::FunctionSchema& schema, size_t a);

/// Whether result `r` of an op that writes nothing in place shares an operand's bytes.
bool is_alias(const OpEvent& event, size_t r);

/// What an observed op gave: its results, or whatever it wrote in place, after the op.
std::vector<OpResult> op_results(const OpEvent& event, std::span<const c10::IValue> results);

}  // namespace lockstep
