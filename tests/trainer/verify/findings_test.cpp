// What a finding names besides op and rule: axis and ranks, where wrong values come from, what is wrong outside of ops,
// what it cannot tell, and what to do next.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/verify/finding.h"
#include "trainer/verify/mesh_comparison.h"

namespace lockstep::trainer {
namespace {

using ::testing::AllOf;
using testing::batch_for;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::small_job;
using testing::small_llama_on;
using ::testing::StartsWith;

/// Microbatches of one sample.
Job accumulating_job() {
  auto job = small_job();
  job.training.local_batch_size = 1;
  return job;
}

using Spoil = void (*)(const LocalCall& call, const at::Tensor& result);

/// The built-in rules with one row that has a fault, on whichever ranks `spoil` says.
std::shared_ptr<const RuleSet> faulty(const char* op, Spoil spoil) {
  static thread_local Spoil change;
  static thread_local LocalFunction right;
  auto rule = *built_in_rules(Numerics::kCanonical)->find(op);
  right = rule.local, change = spoil;
  rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
    const auto first = stack[0];
    if (right)
      right(call, stack);
    else
      call.op.callBoxed(stack);
    change(call, (stack.empty() ? first : stack[0]).toTensor());
  };
  return built_in_rules(Numerics::kCanonical)->with(rule);
}

StepCheck check_with(const Job& job, const char* mesh, std::shared_ptr<const RuleSet> rules,
                     Observer* observer = nullptr) {
  StepVerifier verifier(job, small_llama_on(mesh, std::move(rules)));
  std::optional<ObserverScope> scope;
  if (observer) scope.emplace(verifier.candidate().world().observers(), *observer);
  auto check = verifier.check(1, batch_for(job, 1), 1e-2);
  EXPECT_FALSE(check.agrees());
  if (!check.blame) check.blame.emplace();
  return check;
}

// Axis and ranks

TEST(FindingOfAnOp, NamesTheAxisAlongWhichItsSumIsWrong) {
  const auto check = check_with(small_job(), "dp_shard=2,tp=2", faulty("embedding", [](const auto& call, auto& result) {
                                  if (call.index % 2 == 1) result.mul_(2);
                                }));
  EXPECT_EQ(check.blame->op, "embedding");
  EXPECT_EQ(check.blame->axis, "tp");
  EXPECT_THAT(check.blame->group, ElementsAre(0, 1));
  EXPECT_THAT(check.blame->text(), HasSubstr("\n  axis     tp, ranks 0-1; wrong on ranks 0-3\n"));
}

TEST(FindingOfAnOp, NamesTheAxisOnWhoseCoordinateItDepends) {
  const auto check =
      check_with(small_job(), "dp_replicate=2,tp=2", faulty("mesh::adamw", [](const auto& call, auto& result) {
                   if (call.index >= 2) result.mul_(2);
                 }));
  EXPECT_EQ(check.blame->axis, "dp_replicate");
  EXPECT_THAT(check.blame->group, ElementsAre(0, 2));
  EXPECT_THAT(check.blame->ranks, ElementsAre(2, 3));
}

TEST(FindingOfAnOp, NamesRanksWhereNoAxisTells) {
  const auto check =
      check_with(small_job(), "dp_shard=2,tp=2", faulty("mesh::swiglu", [](const auto& call, auto& result) {
                   if (call.index == 3) result.mul_(2);
                 }));
  EXPECT_EQ(check.blame->axis, "");
  EXPECT_THAT(check.blame->text(), HasSubstr("\n  ranks    wrong on rank 3\n"));
}

// Patterns

TEST(FindingOfAnOp, SaysThatWhatItWritesIsOld) {
  auto rule = *built_in_rules(Numerics::kCanonical)->find("mesh::adamw");
  static thread_local LocalFunction right;
  right = rule.local;
  rule.local = [](const LocalCall& call, torch::jit::Stack& stack) {
    const auto parameter = stack[0].toTensor();
    const auto old = parameter.clone();
    right ? right(call, stack) : call.op.callBoxed(stack);
    if (call.index == 1) parameter.copy_(old);
  };
  const auto check = check_with(small_job(), "dp_shard=2", built_in_rules(Numerics::kCanonical)->with(rule));
  EXPECT_EQ(check.blame->op, "mesh::adamw");
  EXPECT_THAT(check.blame->pattern, StartsWith("old values, in ["));
  EXPECT_THAT(check.blame->worst, HasSubstr(", on rank 1: old values, in ["));
}

TEST(FindingOfAnOp, SaysThatItGivesWhatItGaveTheMicrobatchBefore) {
  static thread_local at::Tensor before;
  before = at::Tensor();
  const auto rules = faulty("mesh::swiglu", [](const auto& call, auto& result) {
    if (call.index != 1 || call.context.module() != "layers.1.feed_forward") return;
    const auto now = result.clone();
    if (call.context.microbatch() > 0) result.copy_(before);
    before = now;
  });
  const auto check = check_with(accumulating_job(), "tp=2", rules);
  EXPECT_EQ(check.blame->op, "mesh::swiglu") << check.blame->text();
  EXPECT_THAT(check.blame->pattern, StartsWith("old values, in ["));
}

/// Rank 1 takes what it received from rank 0 for what every other sent.
struct OnePieceForAll : Observer {
  void received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) override {
    if (event.kind != CollectiveKind::kAllGather || rank != 1 || !payload.is_floating_point()) return;
    if (source == 0) first = payload;
    if (source == 2 && first.sizes() == payload.sizes()) payload = first.clone();
  }
  at::Tensor first;
};

TEST(FindingOfACollective, SaysWhosePieceStandsWhereAnotherBelongs) {
  OnePieceForAll fault;
  const auto check = check_with(small_job(), "dp_shard=3", nullptr, &fault);
  EXPECT_EQ(check.blame->op, "gather_parameters") << check.blame->text();
  EXPECT_THAT(check.blame->pattern, StartsWith("the values of rank 0, in ["));
  EXPECT_THAT(check.blame->module, ::testing::Not("")) << check.blame->text();
}

/// An optimizer that leaves out one parameter.
class Forgetful final : public Optimizer {
 public:
  explicit Forgetful(std::unique_ptr<Optimizer> right) : right_(std::move(right)) {}
  std::vector<SlotKind> slots(const ParameterState& parameter) const override { return right_->slots(parameter); }
  std::vector<StepScalar> scalars(int64_t step, double rate, double scale) const override {
    return right_->scalars(step, rate, scale);
  }
  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    if (parameter.name.find("norm") == std::string::npos) right_->update(parameter, gradient, scalars);
  }

 private:
  std::unique_ptr<Optimizer> right_;
};

TEST(FindingOfAStep, SaysWhatDidNotComeAndThatValuesAreOld) {
  const auto job = small_job();
  auto wrong = small_llama_on("dp_shard=2");
  wrong.keep_gradients = true;
  wrong.make_optimizer = [&] { return std::make_unique<Forgetful>(make_optimizer(job)); };
  TrainingRun run(job, wrong);
  StepVerifier verifier(job, small_llama_on("dp_shard=2"), run);
  const auto check = verifier.check(1, batch_for(job, 1), 1e-2);
  ASSERT_FALSE(check.agrees());
  EXPECT_EQ(check.blame->kind, "step") << check.blame->text();
  EXPECT_THAT(check.blame->id, StartsWith("none of those that were compared"));
  EXPECT_THAT(check.blame->before,
              HasSubstr(" of one device did not come (the first: step 1, microbatch 0, optimizer, "));
  EXPECT_EQ(check.blame->pattern, "old values: as before the step");
  EXPECT_THAT(check.blame->worst, HasSubstr("; old values: as before the step"));
  EXPECT_THAT(check.blame->ranks, ElementsAre(0, 1));
}

// What is made without an op

struct WrongValue : Observer {
  explicit WrongValue(std::string wanted) : name(std::move(wanted)) {}
  void after_value(const ValueEvent& event) override {
    if (event.id.op != name) return;
    ++count;
    const PlainTensors guard;
    if (event.spec)
      event.shards[1].mul_(2);
    else
      event.number *= 1.5;
  }
  std::string name;
  int count = 0;
};

TEST(FindingOfAValue, NamesJoinedGradients) {
  for (const char* mesh : {"tp=2", "dp_replicate=2", "dp_shard=3"}) {
    WrongValue fault("accumulate_gradients");
    const auto check = check_with(accumulating_job(), mesh, nullptr, &fault);
    EXPECT_GT(fault.count, 2);
    EXPECT_EQ(check.blame->kind, "joined") << check.blame->text();
    EXPECT_EQ(check.blame->op, "accumulate_gradients");
    EXPECT_EQ(check.blame->phase, "reduce");
    EXPECT_EQ(check.blame->module, "tok_embeddings.weight");
    EXPECT_THAT(check.blame->text(), HasSubstr("accumulate_gradients #0\n  axis     ")) << mesh;
  }
}

TEST(FindingOfAValue, NamesNumbers) {
  for (const char* name : {"valid_tokens", "loss", "gradient_norm", "clip"}) {
    WrongValue fault(name);
    const auto check = check_with(small_job(), "dp_shard=2", nullptr, &fault);
    EXPECT_EQ(check.blame->kind, "number") << name << ": " << check.blame->text();
    EXPECT_EQ(check.blame->op, name);
    EXPECT_THAT(check.blame->worst, AllOf(StartsWith(std::string(name) + " = "), HasSubstr(", one device: ")));
  }
}

// What cannot be told, and what comes next

TEST(Finding, SaysWhatItCannotTell) {
  const auto rules = faulty("mesh::swiglu", [](const auto& call, auto& result) {
    if (call.index == 1) result.mul_(2);
  });
  const auto beside_replicas = check_with(accumulating_job(), "dp_replicate=2", rules);
  EXPECT_EQ(beside_replicas.blame->limits,
            "the reference of this report has the same dp_replicate=2: what its ranks do wrong alike cannot be told");
  EXPECT_THAT(beside_replicas.blame->text(), HasSubstr("\n  limits   the reference of this report"));
  EXPECT_EQ(check_with(small_job(), "dp_replicate=2", rules).blame->limits, "") << "beside one device";
}

TEST(Finding, NamesTheNextCommandOnce) {
  const std::string plain = "INCONSISTENT\n  worst    x\n  resume   from the start";
  EXPECT_EQ(next_of(plain), "");
  const auto with = with_next(plain, "lockstep verify job.toml");
  EXPECT_EQ(with, "INCONSISTENT\n  worst    x\n  again    lockstep verify job.toml\n  resume   from the start");
  EXPECT_EQ(next_of(with), "lockstep verify job.toml");
  EXPECT_EQ(with_next(with, "another"), with);
  EXPECT_EQ(with_next(std::string("INCONSISTENT"), "x"), "INCONSISTENT\n  again    x");
}

TEST(Finding, ThatCannotBeWrittenHasANextCommandAllTheSame) {
  const auto check = check_with(small_job(), "tp=2", faulty("mesh::swiglu", [](const auto& call, auto& result) {
                                  if (call.index == 1) result.mul_(2);
                                }));
  const TemporaryFolder folder;
  const auto finding = with_next(finding_with_case(check, folder.write("a file", "") + "/below"), "lockstep verify");
  EXPECT_EQ(finding.case_file, "");
  EXPECT_EQ(finding.next, "lockstep verify");
  EXPECT_THAT(finding.text, AllOf(HasSubstr("\n  case     not written: "), HasSubstr("\n  again    lockstep verify")));
}

// Errors

TEST(Errors, OfACheckedStepNameMeshAndStep) {
  const auto message_of = [](const char* op, Spoil spoil) -> std::string {
    StepVerifier verifier(small_job(), small_llama_on("tp=2", faulty(op, spoil)));
    try {
      verifier.check(1, batch_for(small_job(), 1), 1e-2);
    } catch (const InternalError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_THAT(message_of("mesh::swiglu",
                         [](const auto& call, auto& result) {
                           if (call.index == 1) result.view({-1, 7919});
                         }),
              StartsWith("mesh tp=2, step 1: LibTorch: shape '[-1, 7919]' is invalid"));
  EXPECT_THAT(message_of("linear", [](const auto& call, auto&) { LOCKSTEP_CHECK(call.index != 1, "wrong"); }),
              StartsWith("mesh tp=2, step 1: internal error at "));
}

}  // namespace
}  // namespace lockstep::trainer
