#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/lockstep/arguments.h"
#include "tools/lockstep/launch/launch_result.h"
#include "tools/lockstep/launch/launched_ranks.h"
#include "tools/lockstep/launch/slots.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::tool {

/// `lockstep launch --restarts K`: a training run that goes on from its last checkpoint when it has lost a rank, on the
/// largest mesh (largest_mesh()) for the slots that are left, and on a larger one when more are back.
class RestartedLaunch {
 public:
  /// BadInput unless the command trains a job that saves checkpoints, on a mesh of as many ranks as are launched.
  explicit RestartedLaunch(const LaunchOptions& options);

  /// Until the run has ended, by itself, by a signal, by an error that no restart helps against, or for want of ranks
  /// or restarts.
  ExitCode run();

 private:
  using Clock = std::chrono::steady_clock;

  /// The largest mesh for the slots that are free.
  std::optional<trainer::MeshDegrees> mesh_for_now();
  /// The same, when there are enough. None after a signal, and where there will never be.
  std::optional<trainer::MeshDegrees> wait_for_ranks();
  std::string want_of_ranks();
  /// Whether to go on after a run that has ended.
  bool goes_on(const LaunchedRanks& ranks);
  void note_loss(const LaunchedRanks& ranks);
  std::vector<std::string> elastic_words(const trainer::MeshDegrees& mesh) const;

  LaunchOptions options_;
  trainer::MeshDegrees mesh_;  ///< of the job
  int64_t global_batch_size_ = 0;
  bool had_a_start_ = false, asks_for_a_step_ = false;
  Slots slots_;
  LaunchResult result_;
  ExitCode code_ = ExitCode::kFine;
  nlohmann::ordered_json restarts_ = nlohmann::ordered_json::array();
};

}  // namespace lockstep::tool
