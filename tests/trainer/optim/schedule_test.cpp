#include "trainer/optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

Job job_of(int64_t warmup, int64_t steps, std::optional<double> decay_ratio, const char* decay_type,
           double minimum = 0) {
  Job job;
  job.optimizer.lr = 1.0;
  job.lr_scheduler = {warmup, {}, decay_ratio, decay_type, minimum};
  job.training.steps = steps;
  return job;
}

TEST(Schedule, WarmsUpStaysAndDecaysLinearly) {
  // W = 4, T = 20, D = 10: stable up to step 11, then (s - 11) / 10.
  const LearningRateSchedule schedule(job_of(4, 20, 0.5, "linear"));
  const double expected[] = {0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1};
  for (int step = 1; step <= 20; ++step) EXPECT_NEAR(schedule.factor(step), expected[step - 1], 1e-15) << step;
  EXPECT_EQ(schedule.factor(21), 0.0);
  EXPECT_EQ(schedule.factor(1000), 0.0) << "stays at its end";
}

TEST(Schedule, WithoutARatioDecayFollowsTheWarmup) {
  const LearningRateSchedule schedule(job_of(2, 10, {}, "linear"));
  EXPECT_EQ(schedule.decay_steps(), 8);
  EXPECT_EQ(schedule.factor(2), 1.0);
  EXPECT_EQ(schedule.factor(3), 1.0) << "the virtual last step";
  EXPECT_EQ(schedule.factor(4), 0.875);
  EXPECT_EQ(schedule.factor(10), 0.125);
}

TEST(Schedule, ShapesHaveTheirClosedForms) {
  for (int step = 1; step <= 8; ++step) {
    const double p = (step - 1) / 8.0;
    EXPECT_EQ(LearningRateSchedule(job_of(0, 8, 1.0, "linear")).factor(step), 1 - p);
    EXPECT_EQ(LearningRateSchedule(job_of(0, 8, 1.0, "sqrt")).factor(step), 1 - std::sqrt(p));
    EXPECT_NEAR(LearningRateSchedule(job_of(0, 8, 1.0, "cosine")).factor(step), 0.5 * (1 + std::cos(M_PI * p)), 4e-16);
    EXPECT_NEAR(LearningRateSchedule(job_of(0, 8, 1.0, "linear", 0.2)).factor(step), 0.2 + 0.8 * (1 - p), 4e-16);
  }
}

TEST(Schedule, CutsWhatDoesNotFit) {
  const LearningRateSchedule long_warmup(job_of(200, 50, {}, "linear"));
  EXPECT_EQ(long_warmup.warmup_steps(), 50);
  EXPECT_EQ(long_warmup.decay_steps(), 0);
  EXPECT_EQ(long_warmup.factor(50), 1.0);
  EXPECT_EQ(long_warmup.factor(51), 1.0);
  EXPECT_EQ(LearningRateSchedule(job_of(15, 20, 0.5, "linear")).decay_steps(), 5);
}

TEST(Schedule, TotalStepsReplaceTheRunsLength) {
  auto job = job_of(0, 5, 1.0, "linear");
  job.lr_scheduler.total_steps = 10;
  job.optimizer.lr = 0.5;
  EXPECT_EQ(LearningRateSchedule(job).learning_rate(6), 0.25);
}

TEST(Schedule, EveryShapeThatJobsMaySayFallsFromOneToZero) {
  for (const auto& choice : kDecayNames) {
    const auto shape = decay_registry().at(choice.name);
    EXPECT_EQ(shape({0, 7, 7}), 1.0) << choice.name;
    EXPECT_LT(shape({0.6, 13, 7}), shape({0.5, 12, 7})) << choice.name;
    if (choice.name != "inverse_root") EXPECT_NEAR(shape({1, 17, 7}), 0.0, 1e-16) << choice.name;
  }
  EXPECT_THROW(LearningRateSchedule(job_of(0, 8, 1.0, "step")), BadInput);
}

/// Vaswani et al. (2017), section 5.3: min(s^-0.5, s W^-1.5), here times the root of W, so that the peak is 1.
TEST(Schedule, TheInverseRootIsItsPapersAndHasNoEnd) {
  const LearningRateSchedule schedule(job_of(4, 20, {}, "inverse_root"));
  for (int step = 1; step <= 100; ++step)
    EXPECT_NEAR(schedule.factor(step), 2 * std::min(std::pow(step, -0.5), step * std::pow(4, -1.5)), 1e-15) << step;
  const LearningRateSchedule stable(job_of(4, 20, 0.5, "inverse_root", 0.2));
  EXPECT_EQ(stable.factor(10), 1.0);
  EXPECT_NEAR(stable.factor(15), 0.2 + 0.8 * std::sqrt(10.0 / 15), 1e-15);
  EXPECT_NEAR(LearningRateSchedule(job_of(0, 8, {}, "inverse_root")).factor(4), 0.5, 1e-15) << "no warmup";
}

/// min(1, max((1 - beta2) s / 2, s / (0.22 T)), (T - s) / (0.28 T)).
TEST(Schedule, Ranger21HasItsPapers) {
  for (const int steps : {1, 7, 100, 1000})
    for (const double beta2 : {0.95, 0.999}) {
      auto job = job_of(200, steps, {}, "linear");
      job.optimizer.name = "Ranger21";
      job.optimizer.beta2 = beta2;
      const LearningRateSchedule both(job);
      job.ranger21.explore_exploit = false;
      const LearningRateSchedule warmup(job);
      job.ranger21.linear_warmup = false, job.ranger21.explore_exploit = true;
      const LearningRateSchedule explore(job);
      for (int step = 1; step <= steps; ++step) {
        const double up = std::min(1.0, std::max((1 - beta2) / 2 * step, step / (0.22 * steps)));
        const double down = std::min(1.0, (steps - step) / (0.28 * steps));
        EXPECT_NEAR(both.factor(step), std::min(up, down), 1e-14) << step << " of " << steps;
        EXPECT_NEAR(explore.factor(step), std::min(std::min(1.0, step / std::min(200.0, 1.0 * steps)), down), 1e-14);
        if (step <= warmup.warmup_steps()) EXPECT_NEAR(warmup.factor(step), up, 1e-14);
      }
      EXPECT_EQ(both.factor(steps + 5), 0.0);
    }
}

TEST(Schedule, DecayStepsRoundHalvesToEven) {
  EXPECT_EQ(LearningRateSchedule(job_of(0, 5, 0.5, "linear")).decay_steps(), 2);
  EXPECT_EQ(LearningRateSchedule(job_of(0, 7, 0.5, "linear")).decay_steps(), 4);
}

}  // namespace
}  // namespace lockstep::trainer
