#pragma once
#include "trainer/pipeline/schedule.h"

/// Whether a schedule can be carried out.
///
/// Errors are BadInput and name the schedule, the action, and where it stands: "rank 1, action 3" counts from 0.
namespace lockstep::pipeline {

/// That
/// - there is a rank (kMostRanks at most), a stage and a microbatch at least, and each stage is on a rank that there
/// is;
/// - each rank has something to do, and only on stages that are its own and microbatches that there are;
/// - each stage does each microbatch once: one F, and one B or one I with one W;
/// - two actions that begin together are a forward and a whole backward.
void check_actions(const Schedule& schedule);

/// The same, and that no ranks wait for each other (execution_order.h).
void check(const Schedule& schedule);

}  // namespace lockstep::pipeline
