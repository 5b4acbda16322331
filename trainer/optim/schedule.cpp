#include "trainer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/elementary.h"
#include "core/error.h"

namespace lockstep::trainer {

LearningRateSchedule::LearningRateSchedule(const Job& job)
    : peak_(job.optimizer.lr),
      minimum_(job.lr_scheduler.min_lr_factor),
      total_(job.lr_scheduler.total_steps.value_or(job.training.steps)),
      warmup_(std::min(job.lr_scheduler.warmup_steps, total_)),
      decay_(total_ - warmup_),
      shape_(shape_named(job.lr_scheduler.decay_type)) {
  // Halves round to even.
  if (const auto ratio = job.lr_scheduler.decay_ratio)
    decay_ = std::min(decay_, static_cast<int64_t>(std::nearbyint(static_cast<double>(total_) * *ratio)));
}

LearningRateSchedule::Shape LearningRateSchedule::shape_named(const std::string& name) {
  if (name == "linear") return Shape::kLinear;
  if (name == "sqrt") return Shape::kSqrt;
  LOCKSTEP_CHECK_EQ(name, "cosine", "lr_scheduler.decay_type");
  return Shape::kCosine;
}

double LearningRateSchedule::factor(int64_t step) const {
  LOCKSTEP_CHECK(step >= 1, "step {}", step);
  if (step <= warmup_) return static_cast<double>(step) / static_cast<double>(warmup_);
  const auto decaying = step - (total_ + 1 - decay_);
  if (decaying <= 0 || decay_ == 0) return 1.0;
  const auto progress = static_cast<double>(decaying) / static_cast<double>(decay_);
  return minimum_ + (1.0 - minimum_) * decayed(std::min(progress, 1.0));
}

double LearningRateSchedule::decayed(double progress) const {
  switch (shape_) {
    case Shape::kLinear:
      return 1.0 - progress;
    case Shape::kSqrt:
      return 1.0 - std::sqrt(progress);
    case Shape::kCosine:
      return 0.5 * (1.0 + elementary::cos(std::numbers::pi * progress));
  }
  fail<InternalError>("decay shape out of range");
}

}  // namespace lockstep::trainer
