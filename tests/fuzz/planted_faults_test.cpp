// Each kind of cases finds what is wrong on a mesh alone, and says it as a user should read it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fuzz/checks/op_checks.h"
#include "fuzz/programs/program_run.h"
#include "fuzz/search/search.h"
#include "fuzz/steps/random_step.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/fuzz/only_failure.h"

namespace lockstep::fuzz {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::shared_ptr<const RuleSet> broken(lockstep::Numerics numerics, const char* op, const char* linearity) {
  auto rule = *built_in_rules(numerics)->find(op);
  rule.linearity = linearity;
  return built_in_rules(numerics)->with(rule);
}

TEST(PlantedFaults, ASumTakenTooLateIsFoundAmongOps) {
  const auto checks = of(op_checks(broken(lockstep::Numerics::kNative, "relu", "e")), "relu/layouts");
  const auto failure = only_failure(checks, 200);
  EXPECT_THAT(failure.message,
              MatchesRegex("relu\\(.*P\\(sum\\).*\\) on mesh .*: result 0 .*: .* gives .*, expected .*"));
}

TEST(PlantedFaults, OfCanonicalRulesToo) {
  auto rule = *built_in_rules(lockstep::Numerics::kCanonical)->find("exp");
  rule.local = twice_on_one_rank;
  const auto canonical = built_in_rules(lockstep::Numerics::kCanonical)->with(rule);
  const auto failure = only_failure(of(op_checks({}, canonical), "exp/canonical"), 200);
  EXPECT_THAT(failure.message, HasSubstr("exp("));
}

/// docs/fuzz.md: a row that its author describes, here of an op that the table has, too.
TEST(PlantedFaults, InARowOfAUsers) {
  using namespace lockstep::testing;
  const OpCase mine{"abs", OpCase::kExact | OpCase::kGradient,
                    [](Inputs& in) { return Stack{in.tensor(in.sizes(0, 3))}; }};
  const auto names = [](const Checks& checks) {
    std::vector<std::string> all;
    for (const auto& check : checks) all.push_back(check.name);
    return all;
  };
  const auto right = checks_of_row(mine, built_in_rules());
  EXPECT_THAT(names(right),
              ::testing::ElementsAre("abs/candidates", "abs/layouts", "abs/in_place", "abs/refusals", "abs/gradients",
                                     "abs/double_gradients", "abs/canonical", "abs/canonical_gradients"));
  SearchOptions options;
  options.seed = 7, options.seconds = 600, options.cases = 210, options.workers = 0;
  EXPECT_TRUE(search(right, options).failures.empty());
  const auto wrong = checks_of_row(mine, broken(lockstep::Numerics::kNative, "abs", "e"));
  EXPECT_THAT(only_failure(of(wrong, "abs/layouts"), 200).message, HasSubstr("abs("));
}

TEST(PlantedFaults, InPrograms) {
  const auto rules = broken(lockstep::Numerics::kNative, "sigmoid", "e");
  const auto failure =
      only_failure({{"programs/gradients", [=] { a_program_gives_one_devices_gradients(false, rules); }}}, 300);
  EXPECT_THAT(failure.message, HasSubstr("= sigmoid of v"));
}

TEST(PlantedFaults, InTrainingSteps) {
  auto rule = *built_in_rules()->find("mesh::swiglu");
  rule.local = twice_on_one_rank;
  const auto rules = built_in_rules()->with(rule);
  const auto failure = only_failure({{"steps/llama3", [=] { a_step_equals_one_devices("llama3", false, rules); }}}, 20);
  EXPECT_THAT(failure.message, HasSubstr("native llama3, "));
}

}  // namespace
}  // namespace lockstep::fuzz
