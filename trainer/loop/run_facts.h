#pragma once
#include "trainer/job/job.h"
#include "trainer/launch/agreement.h"

namespace lockstep::trainer {

/// What all processes of a run have to take for true before its first step: the build, every key of the resolved job,
/// the data, and the step to resume from. REQUIRES: a resolved job.
Facts run_facts(const Job& job);

}  // namespace lockstep::trainer
