#pragma once
#include <chrono>
#include <optional>
#include <span>

#include "runtime/tensor/mesh.h"
#include "trainer/measure/local_loss.h"

namespace lockstep::trainer {

/// What all ranks together say of a step; the same on each.
struct StepMeasures {
  /// The largest mean over the tokens that a rank has itself, of all ranks; none where no rank has a token.
  std::optional<double> max_loss;
  double data_seconds = 0;  ///< to have the batch, on the rank where that took longest
  /// That a rank stood still for messages, the mean over ranks; none where all of them live in one process.
  std::optional<double> communication_seconds;
  double peak_operations = 0;  ///< a second, of all processes together; 0: not known
};

/// Times the steps of a run on a mesh.
class StepMeter {
 public:
  /// Measures what the process reaches at best, all processes at the same time: its threads (product_speed(), once in a
  /// process), or the GPU that computes, in products of `compute` (device_product_speed()). A collective.
  explicit StepMeter(const Mesh& mesh, c10::ScalarType compute = c10::kFloat);

  /// The step begins: its batch is wanted.
  void begin();
  /// The batch is there.
  void have_batch() { data_seconds_ = seconds(); }
  /// Since the step began.
  double seconds() const;
  /// After the step. A collective of the whole mesh, on every rank in every step: one row of numbers of each.
  StepMeasures end(std::span<const LocalLoss> losses) const;

 private:
  using Clock = std::chrono::steady_clock;
  double waited() const;

  const Mesh& mesh_;
  double peak_operations_;  ///< of this process
  Clock::time_point begin_{};
  double data_seconds_ = 0, waited_before_ = 0;
};

}  // namespace lockstep::trainer
