#pragma once
#include <cstdint>

#include "trainer/job/job.h"
#include "trainer/job/registry.h"

/// The learning rate over the steps: linear warmup, a stable stretch, then a decay (warmup-stable-decay).
namespace lockstep::trainer {

/// What is left of the peak after a share `progress` in [0, 1] of the decay: 1 at 0, 0 at 1.
using DecayShape = double (*)(double progress);

/// By lr_scheduler.decay_type.
Registry<DecayShape>& decay_registry();

/// A pure function of the step; no state, so that resuming needs nothing saved. Same bits on every machine: divisions,
/// the IEEE square root and core/'s cosine.
///
/// With W warmup, D decay and T total steps, step s counted from 1:
///   s <= W          s / W
///   s <= T + 1 - D  1
///   beyond          min + (1 - min) * shape(p), p = (s - (T + 1 - D)) / D, at most 1
/// with shape 1 - p, 1 - sqrt(p) or (1 + cos(pi p)) / 2. Step T has p = (D - 1) / D: the rate does not reach its end.
class LearningRateSchedule {
 public:
  /// The schedule of a job. A warmup longer than the schedule is cut to it, a decay to what the warmup leaves.
  explicit LearningRateSchedule(const Job& job);

  /// The multiple of optimizer.lr at `step` >= 1; beyond the schedule the decay stays at its end, p = 1.
  double factor(int64_t step) const;

  /// optimizer.lr * factor(step).
  double learning_rate(int64_t step) const { return peak_ * factor(step); }

  int64_t warmup_steps() const { return warmup_; }
  int64_t decay_steps() const { return decay_; }
  int64_t total_steps() const { return total_; }

 private:
  double peak_;
  double minimum_;
  int64_t total_;
  int64_t warmup_;
  int64_t decay_;
  DecayShape shape_;
};

}  // namespace lockstep::trainer
