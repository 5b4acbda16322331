#pragma once
#include <ATen/core/ivalue.h>

#include <span>
#include <string>
#include <vector>

#include "consistency/held_shards.h"
#include "core/digest/digest.h"
#include "runtime/context/observer.h"
#include "runtime/dispatch/op_results.h"

namespace lockstep {

/// A tensor operand of an op, as it was before the op.
struct TracedOperand {
  int argument = 0, element = -1;  ///< of a list: which
  std::vector<int64_t> sizes;
  Digest digest;     ///< of the whole tensor's bytes, where bits are compared
  at::Tensor value;  ///< the whole tensor, where they are not
};

/// What one op took and gave, as plain whole tensors.
struct TracedOp {
  std::vector<TracedOperand> operands;
  std::vector<c10::IValue> numbers;  ///< of each argument: itself, if it is a number or a list of numbers
  std::vector<at::Tensor> results;   ///< views included, whatever their dtype
  std::vector<at::Tensor> computed;  ///< those that are no views
};

/// A tensor operand, in a list or by itself.
struct Operand {
  int argument, element;
  at::Tensor tensor;
};
/// Those that can be read now: what is pending cannot. The same on all ranks.
std::vector<Operand> operands_of(std::span<const c10::IValue> arguments);
/// The same of an op, without what it overwrites unread.
std::vector<Operand> operands_read_by(const OpEvent& event);
/// The others, which the op brings up to date.
std::vector<Operand> awaited_operands_of(std::span<const c10::IValue> arguments);

/// After the op: those of `awaited` that are there, as the op took them. What another op awaited is none of its
/// operands.
std::vector<Operand> arrived(const OpEvent& event, const std::vector<Operand>& awaited);

/// Whether the results of an op are memory that nobody has written: there is nothing to compare.
bool is_unwritten(const OpEvent& event);

/// The tensors that an op computed: its results, or what it wrote in place. Views compute nothing.
std::vector<at::Tensor> computed_results(const OpEvent& event, std::span<const c10::IValue> results);
/// What the op gave, views included; none that is pending or unwritten.
std::vector<OpResult> readable_results(const OpEvent& event, std::span<const c10::IValue> results);

/// The whole of a sharded tensor (a collective), or a plain one as it is.
at::Tensor whole_value(const at::Tensor& tensor);

Digest digest_of(const at::Tensor& whole);

/// The number or list of numbers, else nothing.
c10::IValue number_of(const c10::IValue& argument);
/// Doubles to `tolerance`, or in their bits (kBits); nothing is equal to nothing.
bool same_numbers(const c10::IValue& left, const c10::IValue& right, double tolerance);

}  // namespace lockstep
