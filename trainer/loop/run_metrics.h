#pragma once
#include <chrono>
#include <optional>

#include "trainer/measure/state_memory.h"
#include "trainer/measure/step_meter.h"
#include "trainer/metrics/metrics.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// The numbers of a run's steps: measured on every rank, written by the one that open() was called on.
class RunMetrics {
 public:
  /// Both are borrowed.
  RunMetrics(const Job& job, TrainingRun& run);

  /// Makes the files of the dump folder ready for the steps from `first` on. FileError.
  void open(int64_t first);

  /// The steps begin with `first`, now.
  void begin_run(int64_t first);
  void begin_step() { meter_.begin(); }
  void have_batch() { meter_.have_batch(); }

  /// So many seconds since the last end_step(), or begin_run(): the next end_step() tells them.
  void waited_for_checkpoints(double seconds) { checkpoint_seconds_ = seconds; }

  /// `step` is done; `seconds`: of it on the mesh alone; `is_checked`: with all that was compared it took longer. A
  /// collective of the whole mesh.
  StepMetrics end_step(int64_t step, const StepResult& result, double learning_rate, double seconds, bool is_checked,
                       const std::optional<ValidationMetrics>& validation = {});

 private:
  using Clock = std::chrono::steady_clock;
  double tokens_of_a_step() const;
  void measure(StepMetrics& metrics, const StepMeasures& all) const;
  void tell_time(StepMetrics& metrics) const;

  const Job& job_;
  TrainingRun& run_;
  StepMeter meter_;
  StateMemory memory_;
  double operations_per_token_;
  int64_t first_ = 1;
  double checkpoint_seconds_ = 0;
  Clock::time_point start_{};
  std::optional<MetricsFile> file_;
  std::optional<EventFile> curves_;
};

}  // namespace lockstep::trainer
