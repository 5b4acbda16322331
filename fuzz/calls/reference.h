#pragma once
#include "fuzz/calls/sharded_calls.h"

namespace lockstep::testing {

/// The reference's results, stored as the domain says: LibTorch's, or for random ops those of a mesh of one rank.
std::vector<at::Tensor> reference(const OpCase& op_case, const OpCall& call, const Numerics& numerics);

/// The same; the case is left out where LibTorch has no kernel for it.
std::vector<at::Tensor> reference_if_any(const OpCase& op_case, const OpCall& call, const Numerics& numerics);

/// Whether an error of LibTorch's says that it has no kernel for a dtype whose name begins so; for any, by default.
bool lacks_kernel(std::string_view error, std::string_view dtype = "");

/// LibTorch negates no bools. A view of negated ones it finds out when it is read, and of no elements never.
inline bool negates_bools(std::string_view error) {
  return error.find("operator, on a bool tensor is not supported") != error.npos;
}

/// Of some sizes LibTorch multiplies float8 numbers in a loop that it has, of others in one that it has not.
constexpr std::string_view kFloat8 = "Float8_";

/// Scattered tensors for a call's slots.
std::vector<at::Tensor> scatter_all(const OpCall& call, const std::vector<Layout>& layouts);

/// The arguments of a call that makes tensors, on the mesh.
Stack on_mesh_device(const OpCall& call);

}  // namespace lockstep::testing
