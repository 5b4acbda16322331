#pragma once
#include <span>
#include <string>
#include <vector>

#include "core/collective_kind.h"
#include "core/phase.h"
#include "replay/format/recording.h"
#include "replay/view/time_axis.h"

/// What the processes of a step did, and when.
namespace lockstep::replay {

/// An op.
struct TimedOp {
  TimeWindow window;
  RecordedId id;     ///< with names of the process's recording
  size_t lane = 0;   ///< 0, or above that of the op that runs it
  std::string name;  ///< "linear"
};

/// A collective, as all the process's ranks took part in it: from the first one's begin to the last one's end.
struct TimedCollective {
  TimeWindow window;
  RecordedId id;
  size_t lane = 0;
  std::string name;    ///< "all_gather on tp"
  uint64_t bytes = 0;  ///< that these ranks received
};

/// One process: a rank, or all the ranks that it simulated. Within each op it did the parts of all of them, so there is
/// one time for all, and none of a rank alone.
struct ProcessTimeline {
  std::vector<const StepRecording*> ranks;
  std::vector<TimedOp> ops;                  ///< by begin
  std::vector<TimedCollective> collectives;  ///< by begin

  bool is_simulation() const { return ranks.size() > 1; }
  const StepRecording& recording() const { return *ranks.front(); }
  /// "rank 2", "ranks 0-3", "ranks 0, 2".
  std::string name() const;
  /// When the last op or collective that is recorded had ended.
  uint64_t end() const;
};

/// Ranks whose ops began and ended in the same nanoseconds are those of one process. Borrows the recordings.
std::vector<ProcessTimeline> processes_of(std::span<const StepRecording> ranks);

}  // namespace lockstep::replay
