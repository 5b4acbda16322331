#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tools/lockstep/arguments.h"
#include "tools/lockstep/reports/verify/mesh_verdict.h"
#include "trainer/job/job.h"
#include "trainer/job/mesh_degrees.h"

/// What `lockstep verify` compares on each mesh: the job as it is written, or jobs of odd shapes.
namespace lockstep::tool {

struct VerifiedJob {
  trainer::Job job;
  JobArguments arguments;             ///< that give this job
  std::optional<uint64_t> seed = {};  ///< of the shapes; none: those of the job file
  std::vector<trainer::Setting> drawn = {};
};

/// One job, or one for each seed. Keys that the command line names keep their values. BadInput where a job does not fit
/// a mesh.
std::vector<VerifiedJob> verified_jobs(const VerifyOptions& options, const trainer::Job& job,
                                       std::span<const trainer::MeshDegrees> meshes);

/// Says which shapes come now, if they are drawn.
void begin(const VerifiedJob& verified, VerifyReport& report);

/// "7", "1..5"; empty of none.
std::string seeds_text(std::span<const uint64_t> seeds);

}  // namespace lockstep::tool
