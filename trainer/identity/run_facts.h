#pragma once
#include "trainer/identity/facts.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// What all processes of a run have to take for true before its first step: the build, every key of the resolved job,
/// the data, and the step to resume from. REQUIRES: a resolved job.
Facts run_facts(const Job& job);

}  // namespace lockstep::trainer
