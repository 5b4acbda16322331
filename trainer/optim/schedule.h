#pragma once
#include <cstdint>
#include <optional>

#include "trainer/job/job.h"
#include "trainer/names/registry.h"

/// The learning rate over the steps: linear warmup, a stable stretch, then a decay (warmup-stable-decay).
namespace lockstep::trainer {

/// A step of the decay.
struct DecayPoint {
  double progress;   ///< the share of the decay that is over, in [0, 1]
  int64_t step;      ///< counted from 1
  int64_t peak_end;  ///< the last step at the peak, at least 1
};

/// What is left of the peak: 1 at progress 0, and 0 at 1 where the shape has an end.
using DecayShape = double (*)(const DecayPoint& point);

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
/// The shape of inverse_root is sqrt(k / s), k = max(T - D, 1), from step k + 1 on (Vaswani et al., 2017, section 5.3,
/// whose rate is min(1 / sqrt(s), s / W^1.5) up to a factor); it has no end.
///
/// Components of Ranger21 (arXiv 2106.13731) replace the warmup by max(s (1 - beta2) / 2, s / (0.22 T)), at most 1, and
/// what is beyond it by (T - s) / (0.28 T), from 0 to 1; the lower of the two counts.
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
  double warmup_factor(int64_t step) const;
  double decay_factor(int64_t step) const;

  double peak_;
  double minimum_;
  int64_t total_;
  int64_t warmup_;
  int64_t decay_;
  DecayShape shape_;
  std::optional<double> ranger_warmup_;  ///< of each step, before it is cut to 1
  bool explores_ = false;                ///< Ranger21's explore-exploit schedule
};

}  // namespace lockstep::trainer
