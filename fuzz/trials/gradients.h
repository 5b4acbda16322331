#pragma once
#include <functional>

#include "fuzz/calls/sharded_calls.h"

namespace lockstep::testing {

/// What is differentiated: a linear function of a call's results, with a weight for each; or where there are `second`
/// weights, one for each operand, a linear function of that function's gradients.
struct LinearFunctions {
  std::vector<at::Tensor> first, second = {};
};

/// A random weight for each.
std::vector<at::Tensor> draw_weights(const std::vector<at::Tensor>& results);

using Place = std::function<at::Tensor(const at::Tensor&)>;

/// Gradients of the floating operands; of a function of gradients also those of the first function's weights.
/// Undefined where there is none.
std::vector<at::Tensor> sharded_gradients(const OpCall& call, const std::vector<at::Tensor>& operands,
                                          const LinearFunctions& functions, const Place& place);

/// The reference's gradients, stored as the domain says; undefined where there is none.
std::vector<at::Tensor> reference_gradients(const OpCase& op_case, const OpCall& call, const LinearFunctions& functions,
                                            const Numerics& numerics);

/// What differs between a gradient on a mesh and the plain one, of a tensor of such sizes; empty if nothing does.
std::string gradient_difference(const at::Tensor& actual, const at::Tensor& expected, c10::IntArrayRef sizes,
                                const Numerics& numerics);

}  // namespace lockstep::testing
