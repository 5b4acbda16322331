// No result depends on what memory held before: every new tensor is full of NaN (integers: the largest one), and all
// ops give the bits they give without.
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "fuzz/trials/canonical_trial.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/mutants.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

/// LibTorch fills what at::empty gives within a scope.
class FilledMemory {
 public:
  FilledMemory() { at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true); }
  ~FilledMemory() { at::globalContext().setDeterministicAlgorithms(false, false); }
  FilledMemory(const FilledMemory&) = delete;
  FilledMemory& operator=(const FilledMemory&) = delete;
};

TEST(FilledMemory, IsFullOfNan) {
  const FilledMemory filled;
  EXPECT_TRUE(at::isnan(at::empty({1000})).all().item<bool>());
}

/// Property: a random call on a random mesh gives the same bits in filled memory.
void memory_does_not_matter(const OpCase& op_case, Reach reach, bool gradients, const Rules& rules = {}) {
  const auto trial = draw_canonical(op_case, reach, gradients);
  const auto expected = on_one_rank(trial);
  if (gradients && trial.functions.first.empty()) return;
  if (expected.refusal.empty()) ++compared_cases()[op_case.op];
  const FilledMemory filled;
  for (const auto& actual : on_the_mesh(trial, rules)) {
    const auto what = bit_difference(actual, expected);
    if (!what.empty()) RC_FAIL(describe(trial) + " in memory full of NaN: " + what);
  }
}

std::vector<OpCase> valued_cases() {
  std::vector<OpCase> all;
  for (const auto& op_case : op_cases())
    if (!op_case.is(OpCase::kFactory) && !op_case.is(OpCase::kNoValues)) all.push_back(op_case);
  return all;
}

constexpr int kCases = 12;  ///< for each reach

class Uninitialized : public ::testing::TestWithParam<OpCase> {};

TEST_P(Uninitialized, MemoryDoesNotMatter) {
  for (const auto reach : {Reach::kShort, Reach::kLong})
    for (const bool gradients : {false, true}) {
      if (gradients && !GetParam().is(OpCase::kGradient)) continue;
      const auto failure = failure_of_counted(
          GetParam().op + "/uninitialized", GetParam().op, case_count(kCases),
          [&] { memory_does_not_matter(GetParam(), reach, gradients); }, refused_by_canonical(GetParam().op));
      if (!failure.empty()) FAIL() << failure;
    }
}

INSTANTIATE_TEST_SUITE_P(Rows, Uninitialized, ::testing::ValuesIn(valued_cases()), test_name);

/// Leaves the last element of its result as memory was.
void writes_all_but_one(const LocalCall& call, Stack& stack) {
  call.op.callBoxed(stack);
  const auto right = stack[0].toTensor().flatten();
  const auto result = at::empty(stack[0].toTensor().sizes(), right.options());
  if (right.numel() > 0) result.view({-1}).slice(0, 0, -1).copy_(right.slice(0, 0, -1));
  stack = {result};
}

TEST(FilledMemory, ShowsWhatIsNotWritten) {
  auto rule = *built_in_rules(lockstep::Numerics::kCanonical)->find("exp");
  rule.local = writes_all_but_one;
  const auto rules = built_in_rules(lockstep::Numerics::kCanonical)->with(rule);
  const auto& exp = *std::find_if(op_cases().begin(), op_cases().end(), [](auto& c) { return c.op == "exp"; });
  expect_noticed("an element not written", kCases, [&] { memory_does_not_matter(exp, Reach::kShort, false, rules); });
}

}  // namespace
}  // namespace lockstep::testing
