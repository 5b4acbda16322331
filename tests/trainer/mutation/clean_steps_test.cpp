// Steps without a fault: how many under which numerics, and by how much they were compared.
#include "trainer/mutation/trials/clean_steps.h"

#include <gtest/gtest.h>

#include "trainer/optim/schedule.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::trainer {
namespace {

const Setup kSetup{.mesh = "tp=2"};

/// Values that some steps were compared by, and ops and moves in all of them.
struct Compared {
  int64_t values = 0, cases = 0;
};

Compared compared(std::string_view numerics, int64_t steps) {
  auto job = job_of(kSetup, "");
  job.numerics.mode = numerics;
  job.verify.modes.emplace_back(kOpsMode), job.verify.sample = 1;
  const LearningRateSchedule schedule(job);
  MeshComparison comparison(job, options_of(kSetup));
  Compared all;
  for (int64_t step = 1; step <= steps; ++step) {
    const auto check =
        comparison.check(step, suite_batch(job, kMutationVocabulary, step), schedule.learning_rate(step));
    all.values += check.comparison.values;
    all.cases = check.ops->compared_ops + check.ops->compared_moves;  // so far
  }
  return all;
}

/// A canonical step has more ops and moves than a native one: their number shows which was run.
TEST(CleanSteps, AreCanonicalAndForEveryEightOneNative) {
  const auto canonical = compared(kCanonicalMode, 16), native = compared(kNativeMode, 2);
  ASSERT_GT(canonical.cases / 16, native.cases / 2);
  const auto clean = run_clean_steps({&kSetup, 1}, 16);
  EXPECT_EQ(clean.meshes, 1);
  EXPECT_EQ(clean.steps, 18);
  EXPECT_EQ(clean.alarms, 0);
  EXPECT_EQ(clean.values, canonical.values + native.values);
  EXPECT_EQ(clean.cases, canonical.cases + native.cases);
}

}  // namespace
}  // namespace lockstep::trainer
