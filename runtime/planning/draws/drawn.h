#pragma once
#include <ATen/core/Tensor.h>

#include "rng/distribution.h"
#include "runtime/planning/rule.h"

/// What local calls of ops that draw have in common. Everything is a function of the call's stream and of where an
/// element lies in the global tensor.
namespace lockstep::draws {

/// The elements that this rank holds of a tensor as `spec` says, drawn in `dtype`.
at::Tensor drawn(const LocalCall& call, const TensorSpec& spec, c10::ScalarType dtype,
                 const rng::Distribution& distribution);

/// The same for the elements of the first result.
at::Tensor drawn(const LocalCall& call, c10::ScalarType dtype, const rng::Distribution& distribution);

/// Doubles in (0, 1), multiples of 2^-53 but for the least, which is 2^-54: their logarithm is finite and below 0.
at::Tensor drawn_open(const LocalCall& call, const TensorSpec& spec);

/// The logarithm, of the same bits wherever an element lies.
at::Tensor logarithm(const at::Tensor& x);

/// Leaves `values` as the call's result, rounded to what the result declares, or writes them where the op does.
void give(const LocalCall& call, torch::jit::Stack& stack, const at::Tensor& values);

/// The sizes and the dtype of operand 0.
std::vector<ResultShape> like_first(const Call& call);

/// BadInput unless the first result holds real numbers that are no integers.
void check_floating(const LocalCall& call);

}  // namespace lockstep::draws
