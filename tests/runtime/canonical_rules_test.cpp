// Canonical numerics: every row of the op table, and what models call above them, gives one rank's bits on any mesh, in
// any layouts, over any transport; forward and backward.
#include <gtest/gtest.h>

#include "tests/support/canonical_trial.cpp"

namespace lockstep::testing {
namespace {

/// What has values that do not depend on memory.
std::vector<OpCase> valued_cases() {
  std::vector<OpCase> all;
  for (const auto& cases : {op_cases(), composite_cases()})
    for (const auto& op_case : cases)
      if (!op_case.is(OpCase::kFactory) && !op_case.is(OpCase::kNoValues)) all.push_back(op_case);
  return all;
}

std::vector<OpCase> differentiable_cases() {
  auto all = composite_cases();
  for (const auto& op_case : op_cases())
    if (op_case.is(OpCase::kGradient)) all.push_back(op_case);
  return all;
}

class CanonicalRules : public ::testing::TestWithParam<OpCase> {};
class CanonicalGradients : public ::testing::TestWithParam<OpCase> {};

TEST_P(CanonicalRules, AnyLayoutGivesOneRanksBits) {
  for (const auto reach : {Reach::kShort, Reach::kLong}) {
    const auto id = GetParam().op + (reach == Reach::kShort ? "/canonical" : "/canonical long");
    const auto failure =
        failure_of(id, case_count(40), [&] { canonical_bits_equal_one_rank(GetParam(), reach, false); });
    if (!failure.empty()) FAIL() << failure;
  }
}

TEST_P(CanonicalGradients, AnyLayoutGivesOneRanksBits) {
  for (const auto reach : {Reach::kShort, Reach::kLong}) {
    const auto id = GetParam().op + (reach == Reach::kShort ? "/canonical gradients" : "/canonical gradients long");
    const auto failure =
        failure_of(id, case_count(40), [&] { canonical_bits_equal_one_rank(GetParam(), reach, true); });
    if (!failure.empty()) FAIL() << failure;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, CanonicalRules, ::testing::ValuesIn(valued_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Rows, CanonicalGradients, ::testing::ValuesIn(differentiable_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
