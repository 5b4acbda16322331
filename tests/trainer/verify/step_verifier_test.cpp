#include "trainer/verify/step_verifier.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "replay/op_case/case_run.h"
#include "runtime/context/observer.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/verify/finding.h"

namespace lockstep::trainer {
namespace {

using testing::batch_for;
using testing::native_job;
using testing::small_job;
using testing::small_llama;

/// Native: the run beside a reference in float64. Canonical: the run itself, in bits.
StepVerifier verifier_on(const char* mesh, std::shared_ptr<const RuleSet> rules = nullptr,
                         const Job& job = native_job()) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = small_llama;
  options.rules = std::move(rules);
  return StepVerifier(job, options);
}

/// The built-in rules with one row changed.
std::shared_ptr<const RuleSet> mutated(const char* op, const std::function<void(Rule&)>& change) {
  Rule rule = *built_in_rules()->find(op);
  change(rule);
  return built_in_rules()->with(rule);
}

StepCheck check_once(StepVerifier& verifier) { return verifier.check(1, batch_for(small_job(), 1), 1e-2); }

class NoFalseAlarm : public ::testing::TestWithParam<std::tuple<const char*, Numerics>> {};

TEST_P(NoFalseAlarm, AgreesForThreeSteps) {
  const auto [mesh, numerics] = GetParam();
  auto verifier = verifier_on(mesh, nullptr, numerics == Numerics::kNative ? native_job() : small_job());
  for (int64_t step = 1; step <= 3; ++step) {
    const auto check = verifier.check(step, batch_for(small_job(), step), 1e-2);
    EXPECT_TRUE(check.comparison.agrees()) << check.comparison.beyond[0].text() << "\n"
                                           << (check.blame ? check.blame->text() : "");
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, NoFalseAlarm,
                         ::testing::Combine(::testing::Values("one device", "dp_replicate=2", "dp_shard=3", "tp=2",
                                                              "tp=3", "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=2",
                                                              "dp_replicate=2,dp_shard=2,tp=3", "pp=2", "pp=3,tp=2"),
                                            ::testing::Values(Numerics::kNative, Numerics::kCanonical)));

TEST(StepVerifier, SaysHowLongAStepTakesInThoseOfOneDevice) {
  auto verifier = verifier_on("tp=2");
  const auto check = check_once(verifier);
  EXPECT_GT(check.seconds, 0);
  EXPECT_GT(check.seconds_ratio, check.seconds) << "one device needs less than a second";
}

TEST(StepVerifier, BlamesAMutatedRule) {
  // A contraction whose partial sums are taken for whole values: Partial read as Replicate.
  auto verifier = verifier_on("tp=2", mutated("mesh::swiglu", [](Rule& rule) {
                                rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
                                  call.op.callBoxed(stack);
                                  if (call.index == 1) stack = {stack[0].toTensor() * 1.001};
                                };
                              }));
  const auto check = check_once(verifier);
  ASSERT_FALSE(check.comparison.agrees());
  ASSERT_TRUE(check.blame);
  EXPECT_EQ(check.blame->id, "step 1, microbatch 0, forward, layers.0.feed_forward, mesh::swiglu #0");
  EXPECT_EQ(check.blame->rule, "row \"...Tw->...w\"");
}

/// What a finding leaves behind differs again where the fault is, and agrees where it is not.
void expect_case_shows(const StepCheck& check, const std::shared_ptr<const RuleSet>& faulty) {
  ASSERT_TRUE(check.op_case);
  const TemporaryFolder folder;
  const auto text = finding_with_case(check, folder.path()).text;
  EXPECT_NE(text.find("lockstep replay --case " + folder.file("case-1.h5")), std::string::npos) << text;
  const auto read = replay::read_case(folder.file("case-1.h5"));
  EXPECT_EQ(read.arguments, check.op_case->arguments);
  const auto again = replay::run_case(read, faulty);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->worst, check.blame->worst);
  EXPECT_EQ(again->layouts, check.blame->layouts);
  EXPECT_FALSE(replay::run_case(read)) << replay::run_case(read)->text();
}

LocalFunction right_call = nullptr;

/// On rank 1 the first result, or what the op writes, is too large.
void give_too_much(Rule& rule) {
  right_call = rule.local;
  rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
    const auto first = stack[0];
    if (right_call)
      right_call(call, stack);
    else
      call.op.callBoxed(stack);
    if (call.index == 1) (stack.empty() ? first : stack[0]).toTensor().mul_(1.001);
  };
}

class FindingAgain : public ::testing::TestWithParam<std::pair<Numerics, const char*>> {};

TEST_P(FindingAgain, DiffersAlone) {
  const auto [numerics, op] = GetParam();
  auto rule = *built_in_rules(numerics)->find(op);
  give_too_much(rule);
  const auto faulty = built_in_rules(numerics)->with(rule);
  auto job = small_job();
  job.numerics.mode = to_text(numerics);
  TrainingRun::Options options;
  options.mesh = parse_mesh("dp_shard=2,tp=2");
  options.make_model = small_llama;
  options.rules = faulty;
  StepVerifier verifier(job, options);
  const auto check = check_once(verifier);
  ASSERT_FALSE(check.comparison.agrees());
  EXPECT_NE(check.blame->id.find(op), std::string::npos) << check.blame->id;
  expect_case_shows(check, faulty);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, FindingAgain,
    ::testing::Values(std::pair{Numerics::kNative, "mesh::swiglu"}, std::pair{Numerics::kNative, "embedding"},
                      std::pair{Numerics::kNative, "linear"}, std::pair{Numerics::kCanonical, "mesh::swiglu"},
                      std::pair{Numerics::kCanonical, "linear"}, std::pair{Numerics::kCanonical, "mesh::adamw"}));

TEST(StepVerifier, ComparesOpsOfTheSameMicrobatch) {
  // On one device the job's local batch would make three microbatches of what three ranks do in one.
  auto job = native_job();
  job.training.local_batch_size = 4;
  TrainingRun::Options options;
  options.mesh = parse_mesh("dp_shard=3");
  options.make_model = small_llama;
  options.rules = mutated("mesh::sum_of_squares", [](Rule& rule) {
    rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
      call.op.callBoxed(stack);
      if (call.index == 0) stack = {stack[0].toTensor() * 2};
    };
  });
  StepVerifier verifier(job, options);
  const auto check = verifier.check(1, batch_for(job, 1), 1e-2);
  ASSERT_TRUE(check.blame);
  EXPECT_EQ(check.blame->op, "mesh::sum_of_squares");
}

/// Flips one bit of what one rank receives.
struct CorruptPayload : Observer {
  void received(const CollectiveEvent& event, int rank, int, at::Tensor& payload) override {
    if (event.kind != CollectiveKind::kReduceScatter || rank != 1 || done || payload.numel() == 0) return;
    payload = payload.clone();
    payload.view({-1})[0] += 0.5;
    done = true;
  }
  bool done = false;
};

/// One device would take the wrong rate as well.
TEST(StepVerifier, CatchesARateThatIsNotTheJobs) {
  auto verifier = verifier_on("tp=2", nullptr, small_job());
  verifier.expect_rates([](int64_t step) { return 1e-2 * static_cast<double>(step); });
  EXPECT_TRUE(check_once(verifier).agrees());
  const auto check = verifier.check(2, batch_for(small_job(), 2), 1e-2);
  EXPECT_EQ(check.difference.find("learning_rate = 0.01, the job's schedule: 0.02"), 0u) << check.difference;
  EXPECT_EQ(check.blame->kind, "number");
  EXPECT_EQ(check.blame->id, "none: step 2 has not begun");
}

TEST(StepVerifier, CatchesACorruptedCollective) {
  auto verifier = verifier_on("dp_shard=2");
  CorruptPayload fault;
  const ObserverScope scope(verifier.candidate().world().observers(), fault);
  const auto check = check_once(verifier);
  ASSERT_TRUE(fault.done);
  ASSERT_FALSE(check.comparison.agrees());
  EXPECT_EQ(check.comparison.beyond[0].kind, "gradient");
}

TEST(StepVerifier, CatchesALossNormalizedByLocalCounts) {
  // Every rank divides by what it counted itself: the sum of counts is not taken.
  auto verifier = verifier_on("dp_shard=2", mutated("ne.Scalar", [](Rule& rule) {
                                rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
                                  call.op.callBoxed(stack);
                                  if (call.index == 1) stack = {at::zeros_like(stack[0].toTensor())};
                                };
                              }));
  EXPECT_FALSE(check_once(verifier).comparison.agrees());
}

TEST(StepVerifier, CatchesARandomStreamKeyedByRank) {
  auto verifier = verifier_on(
      "dp_shard=2", mutated("native_dropout", [](Rule& rule) {
        rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
          const auto x = stack[0].toTensor();
          const auto mask =
              at::arange(x.numel()).add(static_cast<int64_t>(call.index)).remainder(10).ne(0).view(x.sizes());
          stack = {x.contiguous() * mask.to(x.scalar_type()) / 0.9, mask};
        };
      }));
  const auto check = check_once(verifier);
  ASSERT_FALSE(check.comparison.agrees());
  EXPECT_EQ(check.blame->op, "native_dropout");
}

TEST(StepVerifier, CatchesAClipNormThatCountsTwice) {
  auto verifier = verifier_on("tp=2", mutated("mesh::sum_of_squares", [](Rule& rule) {
                                rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
                                  call.op.callBoxed(stack);
                                  if (call.index == 0) stack = {stack[0].toTensor() * 2};
                                };
                              }));
  const auto check = check_once(verifier);
  ASSERT_FALSE(check.comparison.agrees());
  EXPECT_EQ(check.comparison.beyond[0].kind, "gradient norm");
  EXPECT_EQ(check.blame->op, "mesh::sum_of_squares");
}

}  // namespace
}  // namespace lockstep::trainer
