#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace lockstep::testing {

/// Which sizes an op of our own takes, written apart from its row: an operand each, a letter for each size that has to
/// be the same wherever it stands, "..." for any leading dimensions, "(h*g)" for a product, a digit for itself, "~" for
/// any sizes that broadcast to the first operand's, "t" for a power of two from 2 to 32768.
/// "mesh::swiglu": "...2w".
const std::string& own_operands(const std::string& op);

/// Whether operands of these sizes are taken.
bool fit(const std::string& operands, const std::vector<at::Tensor>& tensors);

}  // namespace lockstep::testing
