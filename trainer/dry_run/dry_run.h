#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "runtime/context/traffic.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// Ranks that hold shards of the same sizes and send the same bytes.
struct RankClass {
  std::vector<int> ranks;  ///< ascending
  double state_bytes = 0;  ///< parameters and optimizer state of one of them
  /// What one of them sends in a step, per axis and CollectiveKind.
  std::map<std::string, std::array<double, kCollectiveKinds>> sent;

  double sent_of(CollectiveKind kind) const;
};

/// One step without values: what ranks send and hold, for any preset and number of ranks.
struct DryRun {
  /// Counts, the same on every rank, and bytes, the mean over ranks; of what is transferred of one rank of each stage,
  /// or of each part of a sequence, together.
  Traffic traffic;
  int64_t parameters = 0;
  std::string sizes;  ///< of the model: models::Model::sizes_text()
  /// Of the unfinished sums per axis and CollectiveKind: nodes that a rank sends, the mean weighted by size; 1 where
  /// sums have no order, 0 where nothing is summed.
  std::map<std::string, std::array<double, kCollectiveKinds>> nodes;
  std::vector<RankClass> classes;  ///< in the order of their first ranks; together all ranks
  PipelinePlan pipeline;
};

/// Runs the model once, for rank 0, or the first of each stage and part of a ring; plans are the same on every rank, so
/// what the others hold and send follows from how the layouts cut.
DryRun dry_run(const Job& job);
DryRun dry_run(const Job& job, TrainingRun::Options options);

}  // namespace lockstep::trainer
