// Every row of the op table against one device, forward.
#include <gtest/gtest.h>

#include "fuzz/trials/rule_properties.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

class RulesForward : public ::testing::TestWithParam<OpCase> {};

TEST_P(RulesForward, EveryCandidateEqualsOneDevice) {
  const auto failure = failure_of(GetParam().op + "/candidates", case_count(kCandidateCases),
                                  [] { candidates_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

TEST_P(RulesForward, AnyLayoutEqualsOneDevice) {
  const auto failure = failure_of_counted(GetParam().op + "/layouts", GetParam().op, case_count(kLayoutCases),
                                          [] { random_layouts_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

INSTANTIATE_TEST_SUITE_P(Rows, RulesForward, ::testing::ValuesIn(op_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
