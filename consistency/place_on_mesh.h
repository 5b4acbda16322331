#pragma once
#include <vector>

#include "consistency/blame.h"

namespace lockstep {

/// Says on which ranks values are wrong (all, where the difference names none), and along which mesh axis: the only one
/// that has several ranks, or the only one on whose coordinate it depends whether a rank is wrong, or the only axis in
/// the first of `hints` that has only one. REQUIRES: the difference is of all ranks.
void place_on_mesh(Blame& blame, const Mesh& mesh, const std::vector<std::vector<int>>& hints);

/// The axes on which a tensor is a Partial, and those on which it is cut.
std::vector<int> partial_axes(const Layout& layout);
std::vector<int> cut_axes(const Layout& layout);
/// The axes on which some operand or result of the op is not whole.
std::vector<int> sharded_axes(const Plan& plan);

/// The mesh of an op's operands and results; null if it has none.
const Mesh* mesh_of(const Plan& plan);

}  // namespace lockstep
