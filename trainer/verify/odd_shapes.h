#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/job/job_setting.h"
#include "trainer/job/mesh_degrees.h"

/// Shapes that nobody would choose: what a mesh does wrong where sizes do not divide shows on these.
namespace lockstep::trainer {

/// Overrides of a resolved job, drawn from `seed`, the same on every machine: sizes of the model (odd, of one element,
/// of fewer heads than ranks, or cut between leaves of canonical sums), dropout or none, length and number of samples,
/// microbatches, recomputation, what is gathered again, type of compute, what computes in float32. The drawn job fits
/// its own mesh and each of `meshes`, and a step of it takes a fraction of a second. BadInput where meshes ask together
/// for more than 2^20 samples.
std::vector<Setting> odd_shapes(uint64_t seed, const Job& job, std::span<const MeshDegrees> meshes);

/// The resolved job with these settings, resolved again. RefusedJob, BadInput where they do not go together.
Job with_settings(const Job& job, std::span<const Setting> settings);

/// "--model.width 42 --model.heads 7": to be pasted behind a command.
std::string text_of(std::span<const Setting> settings);

}  // namespace lockstep::trainer
