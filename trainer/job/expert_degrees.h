#pragma once
#include <string_view>
#include <vector>

#include "trainer/job/mesh_degrees.h"

/// How experts are divided over the ranks of a mesh: expert parallelism has no axis of its own, it folds over those
/// that cut tokens, whole axes, the innermost first: tp (unless it cuts each expert's matrices), cp, dp_shard.
namespace lockstep::trainer {

/// The mesh axes that divide the experts, innermost first; none where ep is 1. BadInput naming the choices where no
/// whole axes make mesh.ep, or where mesh.etp is neither 1 nor tp.
std::vector<std::string_view> expert_axes(const MeshDegrees& mesh);

/// All degrees that whole axes make, from 1 on: of the mesh with any of them as ep.
std::vector<int64_t> expert_degrees(const MeshDegrees& mesh);

/// Whether expert_axes() gives them.
bool can_divide_experts(const MeshDegrees& mesh);

/// Whether tp cuts each expert's matrices: then experts see what all its ranks see.
bool cuts_matrices_of_experts(const MeshDegrees& mesh);

/// Throws as expert_axes(), and for a model without experts.
void require_experts_divide(const Job& job, const MeshDegrees& mesh);

}  // namespace lockstep::trainer
