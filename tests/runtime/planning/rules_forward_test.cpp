// Every row of the op table against one device, forward.
#include <gtest/gtest.h>

#include "tests/support/rule_properties.cpp"
#include "tests/support/rule_trial.cpp"
#include "tests/support/scatter.cpp"
#include "tests/support/sharded_calls.cpp"

namespace lockstep::testing {
namespace {

class RulesForward : public ::testing::TestWithParam<OpCase> {};

TEST_P(RulesForward, EveryCandidateEqualsOneDevice) {
  const auto failure = failure_of(GetParam().op + "/candidates", case_count(30),
                                  [] { candidates_equal_one_device(GetParam(), RuleSet::built_in()); });
  if (!failure.empty()) FAIL() << failure;
}

TEST_P(RulesForward, AnyLayoutEqualsOneDevice) {
  const auto failure = failure_of(GetParam().op + "/layouts", case_count(120),
                                  [] { random_layouts_equal_one_device(GetParam(), RuleSet::built_in()); });
  if (!failure.empty()) FAIL() << failure;
}

INSTANTIATE_TEST_SUITE_P(Rows, RulesForward, ::testing::ValuesIn(op_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
