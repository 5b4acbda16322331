#pragma once
#include <cstdint>
#include <vector>

/// Which rank holds which stage.
namespace lockstep::pipeline {

/// For each stage its rank, in loops: stage s on rank s % ranks.
std::vector<int64_t> loop_placement(int64_t ranks, int64_t stages_per_rank);

/// For each of 2 * ranks stages its rank, down and up again: stages r and 2 * ranks - 1 - r on rank r, so that the loss
/// is computed where the input comes in.
std::vector<int64_t> v_placement(int64_t ranks);

/// The stages of a rank, first to last.
std::vector<int64_t> stages_of(const std::vector<int64_t>& rank_of_stage, int64_t rank);

}  // namespace lockstep::pipeline
