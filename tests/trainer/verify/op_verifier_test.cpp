// Mode ops on training steps.
#include "trainer/verify/op_verifier.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "replay/op_case/case_run.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using testing::batch_for;
using ::testing::HasSubstr;
using testing::native_job;
using testing::small_job;
using testing::small_llama_on;

Job job_of(Numerics numerics) { return numerics == Numerics::kNative ? native_job() : small_job(); }

StepCheck watched_step(TrainingRun& run, OpVerifier& verifier, int64_t step) {
  {
    const OpVerifier::Watch watch(verifier);
    run.step(step, batch_for(small_job(), step), 1e-2);
  }
  StepCheck check;
  verifier.judge(check);
  return check;
}

/// The built-in rules with one row whose result is 1.001 times what it should be on one rank.
std::shared_ptr<const RuleSet> faulty(const char* op, Numerics numerics) {
  const auto rules = built_in_rules(numerics);
  static LocalFunction right;
  Rule rule = *rules->find(op);
  right = rule.local;
  rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
    right ? right(call, stack) : call.op.callBoxed(stack);
    if (call.index == 1) stack[0] = stack[0].toTensor() * 1.001;
  };
  return rules->with(rule);
}

class OpVerifierOn : public ::testing::TestWithParam<std::tuple<const char*, Numerics>> {};

TEST_P(OpVerifierOn, EveryOpAndMoveIsComparedAndAgrees) {
  const auto [mesh, numerics] = GetParam();
  TrainingRun run(job_of(numerics), small_llama_on(mesh));
  OpVerifier verifier(run, 1);
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = watched_step(run, verifier, step);
    EXPECT_TRUE(check.agrees()) << check.difference << "\n" << (check.blame ? check.blame->text() : "");
    EXPECT_EQ(check.ops->compared_ops, check.ops->ops);
    EXPECT_EQ(check.ops->compared_moves, check.ops->moves);
    EXPECT_GE(check.ops->ops, 100 * step);
    EXPECT_LE(check.ops->over_bound, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, OpVerifierOn,
                         ::testing::Combine(::testing::Values("one device", "dp_replicate=2", "dp_shard=3", "tp=2",
                                                              "tp=3", "cp=2", "dp_shard=2,tp=2",
                                                              "dp_replicate=2,dp_shard=2,tp=3", "pp=2,dp_shard=2"),
                                            ::testing::Values(Numerics::kNative, Numerics::kCanonical)));

class OpVerifierUnder : public ::testing::TestWithParam<Numerics> {};

TEST_P(OpVerifierUnder, AWrongOpIsNamedAndItsCaseShowsIt) {
  const auto rules = faulty("mesh::swiglu", GetParam());
  TrainingRun run(job_of(GetParam()), small_llama_on("tp=2", rules));
  OpVerifier verifier(run, 1);
  const auto check = watched_step(run, verifier, 1);
  ASSERT_FALSE(check.agrees());
  EXPECT_EQ(check.blame->kind, "op");
  EXPECT_EQ(check.blame->id, "step 1, microbatch 0, forward, layers.0.feed_forward, mesh::swiglu #0");
  EXPECT_THAT(check.blame->text(), HasSubstr(", on rank 1: "));
  ASSERT_TRUE(check.op_case);
  EXPECT_TRUE(replay::run_case(*check.op_case, rules));
  EXPECT_FALSE(replay::run_case(*check.op_case, nullptr));
}

/// Where mode step has found something already, that is what is told.
TEST_P(OpVerifierUnder, AnotherFindingComesFirst) {
  TrainingRun run(job_of(GetParam()), small_llama_on("tp=2", faulty("mesh::swiglu", GetParam())));
  OpVerifier verifier(run, 1);
  StepCheck check;
  check.difference = "loss";
  {
    const OpVerifier::Watch watch(verifier);
    run.step(1, batch_for(small_job(), 1), 1e-2);
  }
  verifier.judge(check);
  EXPECT_EQ(check.difference, "loss");
  EXPECT_FALSE(check.blame);
}

INSTANTIATE_TEST_SUITE_P(Numerics, OpVerifierUnder, ::testing::Values(Numerics::kNative, Numerics::kCanonical));

/// Listens to which ops are chosen.
std::set<std::string> chosen_in_steps(const char* mesh, int64_t sample, int64_t steps) {
  TrainingRun run(small_job(), small_llama_on(mesh));
  OpCheck check(run.world(), sample);
  std::set<std::string> chosen;
  check.on_chosen([&](const OpEvent& event) {
    auto id = event.id;
    id.step = 0;
    chosen.insert(id.text());
  });
  const ObserverScope scope(run.world().observers(), check);
  for (int64_t step = 1; step <= steps; ++step) run.step(step, batch_for(small_job(), step), 1e-2);
  return chosen;
}

TEST(OpSample, ComesToEveryOp) {
  const auto all = chosen_in_steps("tp=2", 1, 1);
  const auto once = chosen_in_steps("tp=2", 5, 1), often = chosen_in_steps("tp=2", 5, 30);
  EXPECT_GT(once.size(), all.size() / 10);
  EXPECT_LT(once.size(), all.size() / 3);
  EXPECT_GT(often.size(), all.size() * 95 / 100);
}

}  // namespace
}  // namespace lockstep::trainer
