#include "trainer/pipeline/placement.h"

#include <cstddef>

namespace lockstep::pipeline {

std::vector<int64_t> loop_placement(int64_t ranks, int64_t stages_per_rank) {
  std::vector<int64_t> placement;
  for (int64_t stage = 0; stage < ranks * stages_per_rank; ++stage) placement.push_back(stage % ranks);
  return placement;
}

std::vector<int64_t> v_placement(int64_t ranks) {
  std::vector<int64_t> placement;
  for (int64_t stage = 0; stage < ranks; ++stage) placement.push_back(stage);
  for (int64_t stage = ranks; stage < 2 * ranks; ++stage) placement.push_back(2 * ranks - 1 - stage);
  return placement;
}

std::vector<int64_t> stages_of(const std::vector<int64_t>& rank_of_stage, int64_t rank) {
  std::vector<int64_t> stages;
  for (size_t stage = 0; stage < rank_of_stage.size(); ++stage)
    if (rank_of_stage[stage] == rank) stages.push_back(static_cast<int64_t>(stage));
  return stages;
}

}  // namespace lockstep::pipeline
