#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/job/batching.h"
#include "trainer/job/job.h"

/// Where a run begins: anew, or behind a checkpoint of its own.
namespace lockstep::trainer {

struct RunStart {
  std::optional<int64_t> step;       ///< of the checkpoint to load
  RunOrigin origin;                  ///< for the checkpoints that the run will save
  std::vector<std::string> allowed;  ///< "optimizer.lr was 0.0008, is 0.001": this run is a successor
};

/// Folder of the job's checkpoints.
std::string checkpoint_root(const Job& job);

/// The step of the checkpoint that the job goes on from; none where it begins anew. Errors as step_to_load()'s.
std::optional<int64_t> step_to_resume(const Job& job);

/// Of a resolved job. A checkpoint of another run is refused with what differs and both values (BadInput), unless the
/// job allows each by name (checkpoint.allow_changed): the run is then a successor of the one that saved it. So is a
/// successor that would write over what the other run saved later. Without checkpoint.enable a run begins anew.
RunStart run_start(const Job& job);

/// The job with what it leaves open (training.global_batch_size -1) as the checkpoint that it would resume from has it,
/// and training.local_batch_size lowered to what divides that on the mesh that the launch gives it. The job as it was
/// if there is none.
Job with_saved_values(Job job, const Launch& launch);

/// The folder for the checkpoint of a run that was not to save any and is interrupted: the job's, or one beside it if
/// checkpoints are there that another run saved, or that cannot be read.
std::string root_for_interrupted(const Job& job, const RunOrigin& origin);

/// One beside the job's that is the run's own: checkpoint-IDENTITY8.
std::string folder_beside(const Job& job, const RunOrigin& origin);

}  // namespace lockstep::trainer
