// The in-place forms that follow from rows of the op table.
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

std::vector<OpCase> written_cases() {
  std::vector<OpCase> all;
  for (const auto& op_case : op_cases())
    if (in_place_form(op_case.op)) all.push_back(op_case);
  return all;
}

class RulesInPlace : public ::testing::TestWithParam<OpCase> {};

/// LibTorch itself has a detach_.
bool is_refused(const OpCase& op_case) {
  return op_case.op != "detach" && service_of(*built_in_rules(), *in_place_form(op_case.op)).way == Service::kMissing;
}

TEST_P(RulesInPlace, EqualsOneDeviceOrRefuses) {
  const auto failure = failure_of_counted(
      GetParam().op + "/in_place", GetParam().op, case_count(120),
      [] { in_place_equals_one_device(GetParam(), built_in_rules()); }, is_refused(GetParam()));
  if (!failure.empty()) FAIL() << failure;
}

INSTANTIATE_TEST_SUITE_P(Rows, RulesInPlace, ::testing::ValuesIn(written_cases()), test_name);

}  // namespace
}  // namespace lockstep::testing
