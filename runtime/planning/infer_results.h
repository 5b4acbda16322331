#pragma once
#include <ATen/core/Tensor.h>

#include "runtime/planning/plan.h"
#include "runtime/planning/rule.h"

namespace lockstep {

/// A tensor of the same sizes, strides and dtype, without values.
at::Tensor meta_like(const at::Tensor& tensor);

ResultShape shape_of(const at::Tensor& tensor);

/// Sizes, strides and declared dtypes of the results, as LibTorch gives them for the global call, with its refusals:
/// the op on meta tensors. Where LibTorch has no such kernel the row says it. A shard is never asked what is legal.
/// Fills `call.results` and `plan.returns_list`; the plan's rule, operands and what it writes are known.
void infer_results(const c10::OperatorHandle& op, Call& call, Plan& plan);

}  // namespace lockstep
