// What a difference is blamed on. Faults are planted where production code has seams: rules, what a collective
// delivers, the state, the optimizer.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "consistency/blame_observer.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "trainer/verify/finding.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

using testing::batch_for;
using ::testing::HasSubstr;
using testing::native_job;
using testing::small_job;
using testing::small_llama_on;

StepCheck check_once(StepVerifier& verifier, const Job& job = small_job()) {
  return verifier.check(1, batch_for(job, 1), 1e-2);
}

class NoFalseBlame : public ::testing::TestWithParam<std::tuple<const char*, Numerics>> {};

/// Every op's operands, numbers and results and every move, of a step in which nothing is wrong.
TEST_P(NoFalseBlame, OfAStepThatAgrees) {
  const auto [mesh, numerics] = GetParam();
  auto job = numerics == Numerics::kNative ? native_job() : small_job();
  auto options = small_llama_on(mesh);
  job.training.local_batch_size = 1;  // microbatches of one sample
  options.domain = numerics == Numerics::kNative ? Domain::kFloat64 : Domain::kDeclared;
  const double tolerance = numerics == Numerics::kNative ? kFloat64Tolerance : kBits;
  TrainingRun candidate(job, options);
  auto reference_options = options;
  reference_options.mesh = {};
  const auto& batching = candidate.batching();
  if (batching.accumulation_steps > 1) reference_options.mesh.dp_replicate = options.mesh.dp_replicate;
  if (batching.nodes_per_microbatch() > 1) reference_options.mesh.dp_shard = options.mesh.dp_shard;
  auto reference_job = job;
  reference_job.training.local_batch_size =
      job.training.global_batch_size / candidate.batching().accumulation_steps / reference_options.mesh.data_parallel();
  TrainingRun reference(reference_job, reference_options);
  OpTrace trace(tolerance);
  {
    const ObserverScope scope(reference.world().observers(), trace);
    reference.step(1, batch_for(job, 1), 1e-2);
  }
  BlameObserver blamer(trace, tolerance);
  const ObserverScope scope(candidate.world().observers(), blamer);
  candidate.step(1, batch_for(job, 1), 1e-2);
  EXPECT_FALSE(blamer.blame()) << blamer.blame()->text();
  EXPECT_GT(trace.count(), 100u);
  EXPECT_THAT(blamer.compared(), HasSubstr(fmt::format("{} ops with what they took", trace.count())));
  const auto none = blamer.blame_of_none();
  EXPECT_EQ(none.id, "none: every op and every move agrees with one device's") << none.before;
}

INSTANTIATE_TEST_SUITE_P(Meshes, NoFalseBlame,
                         ::testing::Combine(::testing::Values("dp_shard=3", "tp=2", "tp=3", "dp_replicate=2,dp_shard=2",
                                                              "dp_replicate=2,dp_shard=2,tp=3", "pp=2,tp=2"),
                                            ::testing::Values(Numerics::kNative, Numerics::kCanonical)));

/// Changes what rank 1 receives in collectives of one kind, axis and op; the first only, or all.
struct Corruption : Observer {
  Corruption(CollectiveKind kind, std::string axis, bool once) : kind_(kind), axis_(std::move(axis)), once_(once) {}

  void received(const CollectiveEvent& event, int rank, int, at::Tensor& payload) override {
    const auto& axis = event.mesh.axes()[static_cast<size_t>(event.axis)].name;
    const bool is_it = event.kind == kind_ && axis == axis_ && payload.is_floating_point();
    if (!is_it || rank != 1 || (once_ && count > 0)) return;
    payload = payload.mul(2);
    ++count;
  }
  int count = 0;

 private:
  CollectiveKind kind_;
  std::string axis_;
  bool once_;
};

StepCheck check_corrupted(Corruption& fault, const char* mesh) {
  const auto job = small_job();
  auto options = small_llama_on(mesh);
  StepVerifier verifier(job, options);
  const ObserverScope scope(verifier.candidate().world().observers(), fault);
  return check_once(verifier);
}

TEST(BlameOfCollectives, NamesKindAxisAndGroup) {
  const struct {
    CollectiveKind kind;
    const char *axis, *op, *phase;
    std::vector<int> group;
  } cases[] = {{CollectiveKind::kReduceScatter, "dp_shard", "reduce_gradients", "backward", {1, 3}},
               {CollectiveKind::kAllGather, "dp_shard", "gather_parameters", "forward", {1, 3}}};
  for (const auto& [kind, axis, op, phase, group] : cases) {
    Corruption fault(kind, axis, /*once=*/false);
    const auto check = check_corrupted(fault, "dp_shard=2,tp=2");
    ASSERT_GT(fault.count, 0) << axis;
    ASSERT_FALSE(check.agrees()) << axis;
    const auto& blame = *check.blame;
    EXPECT_EQ(blame.kind, "collective") << blame.text();
    EXPECT_EQ(blame.collective, to_text(kind));
    EXPECT_EQ(blame.axis, axis);
    EXPECT_EQ(blame.group, group) << blame.text();
    EXPECT_EQ(blame.phase, phase) << blame.text();
    if (*op) {
      EXPECT_EQ(blame.op, op);
    }
    EXPECT_EQ(blame.ranks, std::vector<int>{1}) << blame.text();
    EXPECT_THAT(blame.text(),
                HasSubstr(fmt::format("  kind     {} over {}, {}\n", to_text(kind), axis, ranks_text(group))));
    EXPECT_FALSE(blame.transient);
  }
}

TEST(BlameOfCollectives, WhatDoesNotComeBackIsPassing) {
  Corruption fault(CollectiveKind::kReduceScatter, "dp_shard", /*once=*/true);
  const auto check = check_corrupted(fault, "dp_shard=2");
  ASSERT_EQ(fault.count, 1);
  ASSERT_FALSE(check.agrees());
  EXPECT_TRUE(check.blame->transient);
  EXPECT_EQ(check.blame->kind, "step");
  EXPECT_THAT(finding_of(check), HasSubstr("  passing  run again, the step agrees"));
}

/// On rank 1 the first result is what `spoil` makes of it.
std::shared_ptr<const RuleSet> spoiled(const char* op, at::Tensor (*spoil)(const at::Tensor&)) {
  static thread_local at::Tensor (*change)(const at::Tensor&);
  static thread_local LocalFunction right;
  auto rule = *built_in_rules(Numerics::kCanonical)->find(op);
  right = rule.local, change = spoil;
  rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
    if (right)
      right(call, stack);
    else
      call.op.callBoxed(stack);
    if (call.index == 1) stack[0] = change(stack[0].toTensor());
  };
  return built_in_rules(Numerics::kCanonical)->with(rule);
}

TEST(BlameOfOps, FollowsIntegersAndViews) {
  const struct {
    const char *op, *worst;
    at::Tensor (*spoil)(const at::Tensor&);
  } cases[] = {
      {"ne.Scalar", "result of ne.Scalar", [](const at::Tensor& x) { return x.logical_not(); }},
      {"mesh::fixed_point_sum", "result of mesh::fixed_point_sum", [](const at::Tensor& x) { return x.mul(2); }},
      {"view", "result of view", [](const at::Tensor& x) { return x.is_floating_point() ? x.neg() : x; }}};
  for (const auto& [op, worst, spoil] : cases) {
    StepVerifier verifier(small_job(), small_llama_on("dp_shard=2", spoiled(op, spoil)));
    const auto check = check_once(verifier);
    ASSERT_FALSE(check.agrees()) << op;
    EXPECT_EQ(check.blame->kind, "op") << check.blame->text();
    EXPECT_EQ(check.blame->op, op) << check.blame->text();
    EXPECT_THAT(check.blame->worst, HasSubstr(worst));
  }
}

/// A copy that is wrong while the first one is right, which a gather of the first would not see.
TEST(BlameOfOps, SeesEveryCopy) {
  static thread_local LocalFunction right;
  auto rule = *built_in_rules(Numerics::kCanonical)->find("mesh::adamw");
  right = rule.local;
  rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
    const auto parameter = stack[0].toTensor();
    if (right)
      right(call, stack);
    else
      call.op.callBoxed(stack);
    if (call.index == 1) parameter.mul_(1.5);
  };
  StepVerifier verifier(small_job(),
                        small_llama_on("dp_replicate=2", built_in_rules(Numerics::kCanonical)->with(rule)));
  const auto check = check_once(verifier);
  ASSERT_FALSE(check.agrees());
  EXPECT_EQ(check.blame->op, "mesh::adamw") << check.blame->text();
  EXPECT_EQ(check.blame->ranks, std::vector<int>{1});
  EXPECT_EQ(check.blame->pattern, "times 1.5, everywhere");
  EXPECT_THAT(check.difference, HasSubstr("wrong, on rank 1: times 1.5, everywhere)"));
}

TEST(BlameOfTheStart, InitialValuesAndWritesBetweenSteps) {
  const auto job = small_job();
  const auto options = small_llama_on("dp_replicate=2");
  StepVerifier verifier(job, options);
  const auto& value = verifier.candidate().state()[2].value;
  const auto copy = sharded(value).shards()->whole()[1].detach();  // rank 0's stays right
  const auto expect_start = [&](int64_t step) {
    const auto check = verifier.check(step, batch_for(job, step), 1e-2);
    ASSERT_FALSE(check.agrees());
    EXPECT_THAT(check.difference,
                ::testing::StartsWith("parameter before the step of " + verifier.candidate().state()[2].name));
    EXPECT_THAT(check.difference, HasSubstr(", on rank 1: "));
    EXPECT_EQ(check.blame->kind, "start");
    EXPECT_FALSE(check.op_case);
  };
  copy.mul_(2);
  expect_start(1);
  copy.mul_(0.5);
  EXPECT_TRUE(verifier.check(1, batch_for(job, 1), 1e-2).agrees());
  copy.view({-1})[3].add_(0.25);
  expect_start(2);
}

/// Of a step that follows unchecked ones nobody knows the right start.
TEST(BlameOfTheStart, IsNotAskedAfterUncheckedSteps) {
  const auto job = small_job();
  const auto options = small_llama_on("dp_shard=2");
  auto kept = options;
  kept.keep_gradients = true;
  TrainingRun run(job, kept);
  StepVerifier verifier(job, options, run);
  EXPECT_TRUE(verifier.check(1, batch_for(job, 1), 1e-2).agrees());
  run.step(2, batch_for(job, 2), 1e-2);
  EXPECT_TRUE(verifier.check(3, batch_for(job, 3), 1e-2).agrees());
  EXPECT_TRUE(verifier.check(4, batch_for(job, 4), 1e-2).agrees());
}

/// An optimizer that is given another rate than it is told.
class WrongRate final : public Optimizer {
 public:
  explicit WrongRate(std::unique_ptr<Optimizer> right) : right_(std::move(right)) {}
  std::vector<SlotKind> slots(const ParameterState& parameter) const override { return right_->slots(parameter); }
  std::vector<StepScalar> scalars(int64_t step, double rate, double scale) const override {
    return right_->scalars(step, rate * 1.5, scale);
  }
  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    right_->update(parameter, gradient, scalars);
  }

 private:
  std::unique_ptr<Optimizer> right_;
};

TEST(BlameOfNumbers, NamesTheNumberAndTheOp) {
  const auto job = small_job();
  const auto options = small_llama_on("dp_shard=2");
  auto wrong = options;
  wrong.keep_gradients = true;
  wrong.make_optimizer = [&] { return std::make_unique<WrongRate>(make_optimizer(job)); };
  TrainingRun run(job, wrong);
  StepVerifier verifier(job, options, run);
  const auto check = check_once(verifier);
  ASSERT_FALSE(check.agrees());
  EXPECT_THAT(check.difference, ::testing::StartsWith("learning_rate = 0.015, one device: 0.01"));
  EXPECT_EQ(check.blame->kind, "number") << check.blame->text();
  EXPECT_EQ(check.blame->op, "mesh::adamw");
  EXPECT_EQ(check.blame->phase, "optimizer");
}

}  // namespace
}  // namespace lockstep::trainer
