#pragma once
#include <string>
#include <vector>

#include "runtime/tensor/mesh.h"
#include "runtime/tensor/shard_set.h"

namespace lockstep::trainer {

/// What every rank of a whole mesh says, in rank order, on every rank; ranks of one process say the same. A collective,
/// which also holds each rank until all have come.
std::vector<std::string> texts_of_all_ranks(const Mesh& mesh, const std::string& mine);

/// [ranks, sizes...] on the CPU: a tensor of each rank, in rank order, equal sizes and dtypes on all. A collective.
/// `rows`: those of the ranks that live here.
at::Tensor rows_of_all_ranks(const Mesh& mesh, const Shards& rows);

/// What every rank says, in rank order, on every rank. A collective.
std::vector<int64_t> numbers_of_all_ranks(const Mesh& mesh, int64_t mine);

/// Whether any rank says so. A collective.
bool any_rank(const Mesh& mesh, bool mine);

}  // namespace lockstep::trainer
