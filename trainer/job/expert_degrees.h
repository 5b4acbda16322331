#pragma once
#include <string_view>
#include <vector>

#include "trainer/job/mesh_degrees.h"

/// How experts are divided over the ranks of a mesh: expert parallelism has no axis of its own, it folds over those
/// that cut tokens, the innermost first: tp (unless it cuts each expert's matrices), cp, and dp_shard or a part of it.
namespace lockstep::trainer {

/// The mesh axes (mesh_axes()) that divide the experts, innermost first; none where ep is 1. BadInput naming the
/// choices where mesh.ep is none of expert_degrees(), or where mesh.etp is neither 1 nor tp.
std::vector<std::string_view> expert_axes(const MeshDegrees& mesh);

/// Over how many of dp_shard's ranks experts are divided: 1, dp_shard or a divisor of it. Throws as expert_axes().
int64_t shard_part_of_experts(const MeshDegrees& mesh);

/// All that ep may be on such a mesh, from 1 on: tp, tp x cp, and that times a divisor of dp_shard.
std::vector<int64_t> expert_degrees(const MeshDegrees& mesh);

/// Whether expert_axes() gives them.
bool can_divide_experts(const MeshDegrees& mesh);

/// Whether the sum over samples of the experts' gradients can be taken up again by the next microbatch: where experts
/// are divided over ranks of dp_shard, a rank of an expert sees the samples of all of them as one run, which is a
/// subtree of the step's sum if dp_shard is a power of two. Canonical numerics alone has such a tree. Throws as
/// expert_axes().
bool expert_sums_take_microbatches(const MeshDegrees& mesh);

/// Whether tp cuts each expert's matrices: then experts see what all its ranks see.
bool cuts_matrices_of_experts(const MeshDegrees& mesh);

/// Throws as expert_axes(), and for a model without experts.
void require_experts_divide(const Job& job, const MeshDegrees& mesh);

}  // namespace lockstep::trainer
