// Forms that follow from rows through the schema, and ops that LibTorch decomposes: the same values as one device's.
#include <gtest/gtest.h>

#include <set>

#include "fuzz/trials/rule_properties.h"
#include "runtime/dispatch/functional_forms.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/test_name.h"

namespace lockstep::testing {
namespace {

class DerivedForms : public ::testing::TestWithParam<OpCase> {};
class DerivedGradients : public ::testing::TestWithParam<OpCase> {};

TEST_P(DerivedForms, AnyLayoutEqualsOneDevice) {
  const auto failure = failure_of_counted(GetParam().op + "/layouts", GetParam().op, case_count(20),
                                          [] { random_layouts_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

TEST_P(DerivedGradients, EqualOneDevice) {
  const auto failure = failure_of_counted(GetParam().op + "/gradients", GetParam().op, case_count(20),
                                          [] { gradients_equal_one_device(GetParam(), built_in_rules()); });
  if (!failure.empty()) FAIL() << failure;
}

INSTANTIATE_TEST_SUITE_P(Decomposed, DerivedForms, ::testing::ValuesIn(decomposed_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Out, DerivedForms, ::testing::ValuesIn(out_cases()), test_name);
INSTANTIATE_TEST_SUITE_P(Foreach, DerivedForms, ::testing::ValuesIn(foreach_cases()), test_name);

std::vector<OpCase> differentiable(std::vector<OpCase> all) {
  std::erase_if(all, [](const OpCase& op_case) { return !op_case.is(OpCase::kGradient); });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Decomposed, DerivedGradients, ::testing::ValuesIn(differentiable(decomposed_cases())),
                         test_name);

std::set<std::string> names_of(const std::vector<OpCase>& cases) {
  std::set<std::string> names;
  for (const auto& entry : cases) names.insert(entry.op);
  return names;
}

/// What is said to be served has been tried, and what has been tried is said to be served.
TEST(Served, IsWhatACaseTries) {
  const auto rules = built_in_rules();
  auto decomposed = names_of(decomposed_cases());
  decomposed.merge(names_of(composite_cases()));
  const auto outs = names_of(out_cases()), each = names_of(foreach_cases());
  for (const auto& op : tensor_ops()) {
    const auto& name = op_name(op);
    switch (service_of(*rules, op).way) {
      case Service::kForeach:
        EXPECT_TRUE(each.contains(name)) << name;
        break;
      case Service::kWhole:
      case Service::kDecomposition:
        EXPECT_TRUE(decomposed.contains(name)) << name << " has no case";
        break;
      case Service::kMissing:
        EXPECT_FALSE(decomposed.contains(name)) << name << " has a case; add it to decompositions.cpp";
        break;
      default:
        break;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
