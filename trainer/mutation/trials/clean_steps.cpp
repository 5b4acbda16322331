#include "trainer/mutation/trials/clean_steps.h"

#include "trainer/optim/schedule.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::trainer {
namespace {

void run_on(const Setup& setup, std::string_view numerics, int64_t steps, CleanSteps& clean) {
  auto job = job_of(setup, "");
  job.numerics.mode = numerics;
  job.verify.modes.emplace_back(kOpsMode);
  job.verify.sample = 1;
  const LearningRateSchedule schedule(job);
  MeshComparison comparison(job, options_of(setup));
  for (int64_t step = 1; step <= steps; ++step, ++clean.steps) {
    const auto check =
        comparison.check(step, suite_batch(job, kMutationVocabulary, step), schedule.learning_rate(step));
    clean.alarms += !check.agrees();
    clean.values += check.comparison.values;
    if (step == steps) clean.cases += check.ops->compared_ops + check.ops->compared_moves;
  }
}

}  // namespace

CleanSteps run_clean_steps(std::span<const Setup> setups, int64_t steps) {
  CleanSteps clean;
  for (const auto& setup : setups) {
    ++clean.meshes;
    run_on(setup, kCanonicalMode, steps, clean);
    run_on(setup, kNativeMode, std::max<int64_t>(1, steps / 8), clean);
  }
  return clean;
}

}  // namespace lockstep::trainer
