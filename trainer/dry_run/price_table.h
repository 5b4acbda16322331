#pragma once
#include <string>
#include <vector>

#include "trainer/dry_run/dry_run.h"

namespace lockstep::trainer {

/// What one kind of collective costs on one axis of a mesh in a step, under canonical numerics and under native.
struct Price {
  std::string axis;
  CollectiveKind kind;
  TrafficCount canonical, native;
  double nodes = 0;  ///< that a rank sends of an unfinished sum, on average; 0 where nothing is summed

  /// Canonical bytes over native ones; 1 where neither sends anything, infinity where native sends nothing.
  double ratio() const;
};

/// What the order of canonical numerics costs on the wire (docs/numerics.md).
struct PriceTable {
  std::vector<Price> rows;  ///< per axis and kind that either sends
  double canonical_bytes = 0, native_bytes = 0;
  /// What canonical numerics gathers, how often, and why.
  std::map<ImplicitGather, int64_t> gathered;

  double ratio() const;
};

PriceTable price_table(const DryRun& canonical, const DryRun& native);

/// Of two dry runs.
PriceTable price_table(const Job& job, const TrainingRun::Options& options);

/// The job with numerics.mode = "native".
Job with_native_numerics(Job job);

}  // namespace lockstep::trainer
