#pragma once
#include <string>
#include <vector>

#include "runtime/tensor/mesh.h"

namespace lockstep::trainer {

/// What every rank of a whole mesh says, in rank order, on every rank; ranks of one process say the same. A collective,
/// which also holds each rank until all have come.
std::vector<std::string> texts_of_all_ranks(const Mesh& mesh, const std::string& mine);

/// Whether any rank says so. A collective.
bool any_rank(const Mesh& mesh, bool mine);

}  // namespace lockstep::trainer
