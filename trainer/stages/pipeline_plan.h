#pragma once
#include <cstdint>
#include <vector>

#include "models/module.h"
#include "trainer/job/job.h"
#include "trainer/pipeline/schedule.h"

namespace lockstep::trainer {

/// Which blocks of a model each stage has, and what the ranks of the axis pp do in a step.
struct PipelinePlan {
  pipeline::Schedule schedule;
  std::vector<int64_t> first_blocks;  ///< of each stage

  int64_t stages() const { return schedule.stages(); }
};

/// The plan of a job for `ranks` ranks of pp and so many microbatches: its schedule, over blocks that are split as
/// the job names them, or by their work. One rank: one stage, all of a microbatch before the next one begins. Throws
/// BadInput for a schedule that does not have this size or cannot be carried out, for more stages than blocks, and for
/// a model that cannot be cut.
PipelinePlan plan_pipeline(const Job& job, models::Model& model, int64_t ranks, int64_t microbatches);

/// The work of each block of a sequence of this length, in parts of 2^20 of the whole: its multiplications with
/// weights, and those of attention, which all but the first and the last block have alike. (The first reads its
/// tables.)
std::vector<int64_t> work_of_blocks(models::Model& model, int64_t length);

}  // namespace lockstep::trainer
