#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "replay/capture/op_timer.h"
#include "runtime/context/world.h"
#include "trainer/job/job.h"

namespace lockstep::trainer {

/// Traces the steps of a run that its job's [profiling] section chooses: a file for each rank, as Chrome and Perfetto
/// open it, named as torchtitan names it, "DUMP/TRACES/iteration_10/rank3_trace.json".
class StepProfiler {
 public:
  /// `mesh` is that of the run. Both are borrowed.
  StepProfiler(const Job& job, const Mesh& mesh);

  /// The step begins. It is watched until end() if it is one of those: no collective is then under way while ops run.
  void begin(int64_t step);
  void end() { watching_.reset(); }

  /// After a step that was watched: writes its traces, and gives a line about it. Empty after others. A collective.
  /// FileError, the same on all ranks.
  std::string report();

 private:
  std::string folder() const;
  void write(std::span<const replay::TimedStep> steps) const;

  const Job& job_;
  const Mesh& mesh_;
  std::optional<replay::OpTimer> timer_;
  std::optional<ObserverScope> watching_;
  int64_t step_ = 0;  ///< that is watched; 0: none
};

}  // namespace lockstep::trainer
