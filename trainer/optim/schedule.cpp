#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/elementary/elementary.h"
#include "core/error.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

constexpr double kExploreWarmup = 0.22, kExploitShare = 0.28;  // of Ranger21

double linear(const DecayPoint& point) { return 1.0 - point.progress; }
double square_root(const DecayPoint& point) { return 1.0 - std::sqrt(point.progress); }
double cosine(const DecayPoint& point) { return 0.5 * (1.0 + elementary::cos(std::numbers::pi * point.progress)); }
double inverse_root(const DecayPoint& point) {
  return std::sqrt(static_cast<double>(point.peak_end) / static_cast<double>(point.step));
}

}  // namespace

Registry<DecayShape>& decay_registry() {
  static Registry<DecayShape> all(
      "lr_scheduler.decay_type", kDecayNames,
      {{"linear", linear}, {"sqrt", square_root}, {"cosine", cosine}, {"inverse_root", inverse_root}});
  return all;
}

LearningRateSchedule::LearningRateSchedule(const Job& job)
    : peak_(job.optimizer.lr),
      minimum_(job.lr_scheduler.min_lr_factor),
      total_(job.lr_scheduler.total_steps.value_or(job.training.steps)),
      warmup_(std::min(job.lr_scheduler.warmup_steps, total_)),
      shape_(decay_registry().at(job.lr_scheduler.decay_type)) {
  const bool is_ranger = job.optimizer.name == "Ranger21";
  explores_ = is_ranger && job.ranger21.explore_exploit;
  if (is_ranger && job.ranger21.linear_warmup) {
    ranger_warmup_ = std::max((1 - job.optimizer.beta2) / 2, 1 / (kExploreWarmup * static_cast<double>(total_)));
    warmup_ = std::min(static_cast<int64_t>(std::ceil(1 / *ranger_warmup_)), total_);
  }
  decay_ = total_ - warmup_;
  // Halves round to even.
  if (const auto ratio = job.lr_scheduler.decay_ratio)
    decay_ = std::min(decay_, static_cast<int64_t>(std::nearbyint(static_cast<double>(total_) * *ratio)));
  if (explores_) decay_ = static_cast<int64_t>(std::ceil(kExploitShare * static_cast<double>(total_)));
}

double LearningRateSchedule::warmup_factor(int64_t step) const {
  if (ranger_warmup_) return std::min(static_cast<double>(step) * *ranger_warmup_, 1.0);
  return step <= warmup_ ? static_cast<double>(step) / static_cast<double>(warmup_) : 1.0;
}

double LearningRateSchedule::decay_factor(int64_t step) const {
  if (explores_) {
    const double left = static_cast<double>(total_ - step) / (kExploitShare * static_cast<double>(total_));
    return std::clamp(left, 0.0, 1.0);
  }
  const auto decaying = step - (total_ + 1 - decay_);
  if (decaying < 0 || decay_ == 0) return 1.0;
  const auto progress = static_cast<double>(decaying) / static_cast<double>(decay_);
  const double left = shape_({std::min(progress, 1.0), step, std::max<int64_t>(total_ - decay_, 1)});
  return left < 1 ? minimum_ + (1.0 - minimum_) * left : 1.0;
}

double LearningRateSchedule::factor(int64_t step) const {
  LOCKSTEP_CHECK(step >= 1, "step {}", step);
  return std::min(warmup_factor(step), decay_factor(step));
}

}  // namespace lockstep::trainer
