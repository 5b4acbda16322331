#pragma once
#include "consistency/bounds/error_bounds.h"

/// The op of a call once more, in double, on other operands: of an op that is linear in each of its operands, what it
/// gives on magnitudes is the sum of its summands' magnitudes, and what it gives on ones is how many they are.
namespace lockstep::bounds {

/// Of each float, and of each number that is multiplied by, the magnitude. Defined results.
std::vector<at::Tensor> of_magnitudes(const ExactCall& call);

/// Of each float ones, and of each number 1.
std::vector<at::Tensor> of_ones(const ExactCall& call);

/// Of each float what `function` makes of it.
at::Tensor of_each(const ExactCall& call, at::Tensor (*function)(const at::Tensor&));

/// What multiplies the operand of that name counts as it is; of the operand, magnitudes. Magnitudes of the results.
std::vector<at::Tensor> linear_in(const ExactCall& call, std::string_view name);

}  // namespace lockstep::bounds
