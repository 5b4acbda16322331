#pragma once
#include "models/module.h"
#include "trainer/job/batching.h"
#include "trainer/optim/optimizer.h"
#include "trainer/stages/stages.h"

namespace lockstep::trainer {

/// Throws BadInput if this process cannot hold what a step takes at the least: parameters, gradients and optimizer
/// state of its ranks, and the logits of a microbatch, which `logits_copies` of them hold whole, all in float32. Before
/// anything of that size is made: a process that takes more than there is is killed, and says nothing.
void require_memory(models::Model& model, Stages& stages, const Optimizer& optimizer,
                    const std::vector<ParameterSettings>& settings, const Batching& batching, int64_t seq_len,
                    int64_t logits_copies, bool replicas_share);

}  // namespace lockstep::trainer
