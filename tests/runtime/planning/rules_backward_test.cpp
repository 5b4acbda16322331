// Gradients through rows of the op table, and through the ops above it that models call.
#include <gtest/gtest.h>

#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/trials/rule_properties.h"

namespace lockstep::testing {
namespace {

std::vector<OpCase> differentiable_cases() {
  auto all = composite_cases();
  for (const auto& op_case : op_cases())
    if (op_case.is(OpCase::kGradient)) all.push_back(op_case);
  return all;
}

class RulesBackward : public ::testing::TestWithParam<OpCase> {};

TEST_P(RulesBackward, GradientsEqualOneDevice) {
  const auto failure = failure_of(GetParam().op + "/gradients", case_count(100),
                                  [] { gradients_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

INSTANTIATE_TEST_SUITE_P(Rows, RulesBackward, ::testing::ValuesIn(differentiable_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
