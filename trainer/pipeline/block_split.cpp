#include "trainer/pipeline/block_split.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace lockstep::pipeline {
namespace {

/// Runs of at most `most` in weight, as few as possible.
int64_t fewest_runs(std::span<const int64_t> weights, int64_t most) {
  int64_t runs = 1, sum = 0;
  for (const int64_t weight : weights) {
    if (sum + weight > most) {
      ++runs;
      sum = 0;
    }
    sum += weight;
  }
  return runs;
}

/// The least that the heaviest of so many runs can weigh.
int64_t least_heaviest(std::span<const int64_t> weights, int64_t runs) {
  int64_t low = *std::max_element(weights.begin(), weights.end());
  int64_t high = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (fewest_runs(weights, middle) <= runs) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// For each number of runs and each block the least sum of squares of what follows from that block on, in that many
/// runs of at most `most`. By dynamic programming from the last block on.
class EvenRuns {
 public:
  EvenRuns(std::span<const int64_t> weights, int64_t runs, int64_t most)
      : weights_(weights), most_(most), costs_(static_cast<size_t>(runs) + 1) {
    for (auto& of_blocks : costs_) of_blocks.assign(weights.size() + 1, kNone);
    costs_[0][weights.size()] = 0;
    for (size_t run = 1; run < costs_.size(); ++run)
      for (size_t block = 0; block < weights.size(); ++block) costs_[run][block] = best(run, block).cost;
  }

  std::vector<int64_t> first_blocks() const {
    std::vector<int64_t> first;
    size_t block = 0;
    for (size_t run = costs_.size() - 1; run > 0; --run) {
      first.push_back(static_cast<int64_t>(block));
      block = best(run, block).end;
    }
    return first;
  }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();
  struct Best {
    double cost = kNone;
    size_t end = 0;  ///< of the first run
  };

  /// The first of `runs` runs that begins at `block`; of equally good ones the shortest.
  Best best(size_t runs, size_t block) const {
    Best result;
    int64_t sum = 0;
    for (size_t end = block + 1; end <= weights_.size(); ++end) {
      if ((sum += weights_[end - 1]) > most_) break;
      const auto weight = static_cast<double>(sum);
      const double cost = weight * weight + costs_[runs - 1][end];
      if (cost < result.cost) result = {cost, end};
    }
    return result;
  }

  std::span<const int64_t> weights_;
  int64_t most_;
  std::vector<std::vector<double>> costs_;
};

}  // namespace

std::vector<int64_t> split_by_weight(std::span<const int64_t> weights, int64_t stages) {
  const auto blocks = static_cast<int64_t>(weights.size());
  if (stages > blocks)
    fail<BadInput>(
        "{} pipeline stages for {} blocks: each needs one. Choose fewer ranks or stages per rank, or more "
        "layers.",
        stages, blocks);
  return EvenRuns(weights, stages, least_heaviest(weights, stages)).first_blocks();
}

std::vector<int64_t> split_as_named(std::span<const std::string> blocks,
                                    std::span<const std::vector<std::string>> stages) {
  std::vector<int64_t> first;
  size_t next = 0;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    if (stages[stage].empty()) fail<BadInput>("stage {} has no block; each needs one.", stage);
    first.push_back(static_cast<int64_t>(next));
    for (const auto& name : stages[stage]) {
      if (next == blocks.size() || name != blocks[next])
        fail<BadInput>(
            "stage {}: {} stands where {} was expected: stages hold the model's blocks in their order, each "
            "once.",
            stage, name, next == blocks.size() ? "the end" : blocks[next]);
      ++next;
    }
  }
  if (next < blocks.size())
    fail<BadInput>("{} is in no stage: stages hold the model's blocks in their order, each once.", blocks[next]);
  return first;
}

int64_t stages_per_rank(const LayersPerStage& layers, int64_t ranks) {
  const int64_t counted = layers.layers + layers.first_less + layers.last_less;
  const int64_t stages = (counted + layers.per_stage - 1) / layers.per_stage;
  if (stages % ranks != 0)
    fail<BadInput>(
        "{} layers of {} (the ends count {} and {}) are {} stages, no multiple of {} ranks. Choose other "
        "layers per stage; {} give one stage per rank.",
        layers.per_stage, counted, layers.first_less, layers.last_less, stages, ranks, (counted + ranks - 1) / ranks);
  return stages / ranks;
}

}  // namespace lockstep::pipeline
