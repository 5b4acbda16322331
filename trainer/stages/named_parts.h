#pragma once
#include <cstdint>
#include <vector>

#include "models/module.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// The first block of each stage that parallelism.module_fqns_per_model_part names. A block is named by its path
/// ("layers.0", "head"), or else by the modules that checkpoints store of it, which are torchtitan's ("norm",
/// "output"). BadInput, naming the key, unless stages are runs that hold every block once, and for
/// pipeline_parallel_layers_per_stage beside it.
std::vector<int64_t> first_blocks_as_named(const ParallelismSection& parallelism, models::Model& model);

/// How many of these stages each rank has. BadInput if that is no whole number.
int64_t named_stages_per_rank(const ParallelismSection& parallelism, int64_t ranks);

}  // namespace lockstep::trainer
