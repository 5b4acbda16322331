#pragma once
#include <map>
#include <string>
#include <vector>

#include "replay/format/recording.h"

namespace lockstep::replay {

struct DiffCounts {
  size_t same = 0, different = 0;
  size_t only_left = 0, only_right = 0;  ///< ops that the other does not have
  size_t incomparable = 0;               ///< results that are cut otherwise, or of which no digest was kept
};

/// How one step of two recordings compares: of one rank, or of two meshes, or of two versions of the code.
struct TraceDiff {
  DiffCounts all;
  std::map<std::string, DiffCounts> by_module;
  std::string first;  ///< the first result of the left one that differs, with both layouts and digests; empty: none
  std::vector<std::string> scalars;  ///< "loss: 2.5, 2.25", those that differ; "loss: 2.5, none"
  std::string batch;                 ///< in what the batches differ; empty: in nothing
  std::string state;                 ///< both digests of the state after the step, if both are known and differ
  /// Where two numerics versions explain what differs: "left by numerics version 1, right by numerics version 2: ...".
  /// Versions that are not known are told only where something differs.
  std::string numerics;
  bool agrees() const {
    return all.different + all.only_left + all.only_right + scalars.size() == 0 && batch.empty() && state.empty();
  }
  /// Whether any result of both was compared. What was not is not equal.
  bool is_comparable() const { return all.same + all.different > 0; }
};

/// Aligns by op id, not by position; ids that come again by how often they came. Results compare where both ranks hold
/// the same part: under equal layouts, or whole.
TraceDiff diff(const StepRecording& left, const StepRecording& right);

/// "microbatch 0, forward, layers.0.attention, linear #0"
std::string text_of(const RecordedId& id, const StepRecording& recording);

}  // namespace lockstep::replay
