#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/elementary/elementary.h"
#include "core/error.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

double linear(double progress) { return 1.0 - progress; }
double square_root(double progress) { return 1.0 - std::sqrt(progress); }
double cosine(double progress) { return 0.5 * (1.0 + elementary::cos(std::numbers::pi * progress)); }

}  // namespace

Registry<DecayShape>& decay_registry() {
  static Registry<DecayShape> all("lr_scheduler.decay_type", kDecayNames,
                                  {{"linear", linear}, {"sqrt", square_root}, {"cosine", cosine}});
  return all;
}

LearningRateSchedule::LearningRateSchedule(const Job& job)
    : peak_(job.optimizer.lr),
      minimum_(job.lr_scheduler.min_lr_factor),
      total_(job.lr_scheduler.total_steps.value_or(job.training.steps)),
      warmup_(std::min(job.lr_scheduler.warmup_steps, total_)),
      decay_(total_ - warmup_),
      shape_(decay_registry().at(job.lr_scheduler.decay_type)) {
  // Halves round to even.
  if (const auto ratio = job.lr_scheduler.decay_ratio)
    decay_ = std::min(decay_, static_cast<int64_t>(std::nearbyint(static_cast<double>(total_) * *ratio)));
}

double LearningRateSchedule::factor(int64_t step) const {
  LOCKSTEP_CHECK(step >= 1, "step {}", step);
  if (step <= warmup_) return static_cast<double>(step) / static_cast<double>(warmup_);
  const auto decaying = step - (total_ + 1 - decay_);
  if (decaying <= 0 || decay_ == 0) return 1.0;
  const auto progress = static_cast<double>(decaying) / static_cast<double>(decay_);
  return minimum_ + (1.0 - minimum_) * shape_(std::min(progress, 1.0));
}

}  // namespace lockstep::trainer
