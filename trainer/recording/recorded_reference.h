#pragma once
#include <span>
#include <string>
#include <vector>

#include "replay/store/recording_folder.h"
#include "trainer/job/job_setting.h"

namespace lockstep::trainer {

/// A recorded step of all ranks beside one device.
struct ReferenceVerdict {
  int64_t step = 0;
  bool agrees = true;          ///< with one device
  bool is_as_recorded = true;  ///< every rank's results have the recorded digests (canonical numerics alone)
  std::string finding;         ///< the first value and the first op that differ
  std::string deviation;       ///< where the run left the recording
  std::string other_numerics;  ///< why the recorded bits may be others: numerics_difference()
  size_t ops = 0;
};

/// Runs the step on all ranks in this process, from their recorded states, and on one device from the same state, as
/// verification does: bit by bit, or in float64 for native numerics. `changes` are made to the recorded job. Throws
/// BadInput when a rank's recording is missing.
ReferenceVerdict compare_with_reference(const replay::RecordingFolder& folder, int64_t step,
                                        std::span<const Setting> changes = {});

}  // namespace lockstep::trainer
