#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// Which blocks of a model each stage has: runs, in the model's order, of one block at least. A split is the index of
/// each stage's first block.
namespace lockstep::pipeline {

/// The split by weights of work (any unit): the heaviest stage is as light as can be, as all others wait for it. Of
/// these splits the one whose stages are most alike (least sum of squares), and of those the one whose first stages
/// have fewer blocks, as they hold the most activations. BadInput for more stages than blocks. REQUIRES: a stage at
/// least, weights from 0, of at most 2^26 in sum, so that squares are exact.
std::vector<int64_t> split_by_weight(std::span<const int64_t> weights, int64_t stages);

/// The split that a job names: the blocks of each stage, as torchtitan's module_fqns_per_model_part. `blocks`: the
/// names of all, in the model's order. BadInput, naming stage and block, unless the stages are runs and hold every
/// block once.
std::vector<int64_t> split_as_named(std::span<const std::string> blocks,
                                    std::span<const std::vector<std::string>> stages);

/// A model's layers and how a job wants them on stages, as torchtitan's keys of parallelism say it.
struct LayersPerStage {
  int64_t layers = 1;
  int64_t per_stage = 1;                  ///< pipeline_parallel_layers_per_stage
  int64_t first_less = 1, last_less = 1;  ///< ..._first_stage_less_layers, ..._last_stage_less_layers: embedding and
                                          ///< output count as so many
};

/// Stages of each rank: the layers over `per_stage`, rounded up, are all stages. BadInput, with numbers that would do,
/// if the ranks cannot have equally many of these. REQUIRES: numbers of at least 1, `..._less` of at least 0.
int64_t stages_per_rank(const LayersPerStage& layers, int64_t ranks);

}  // namespace lockstep::pipeline
