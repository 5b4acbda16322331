#pragma once
#include <gtest/gtest.h>

#include "fuzz/trials/rule_properties.h"

namespace lockstep::testing {

/// How many random cases one run of the tests tries of a property that has mutants. All of these die within as many.
inline constexpr int kMutantCases = 250;

/// Of the running test: the property holds in so many cases.
inline void expect_holds(const std::function<void()>& property, int cases = kMutantCases) {
  const auto& test = *::testing::UnitTest::GetInstance()->current_test_info();
  const auto id = std::string(test.test_suite_name()) + "/" + test.name();
  EXPECT_EQ(failure_of(id, case_count(cases), property), "");
}

/// Expects a property to fail for a wrong variant of what it checks. The test's record (--gtest_output) says after how
/// many random cases, and how. `cases`: what one run of the tests tries of it.
inline void expect_noticed(const char* fault, int cases, const std::function<void()>& property) {
  int tried = 0;
  const auto failure = failure_of(
      fault, cases,
      [&] {
        ++tried;
        property();
      },
      /*shrink=*/false);
  EXPECT_FALSE(failure.empty()) << "not noticed in " << cases << " cases: " << fault;
  ::testing::Test::RecordProperty(fault, std::to_string(tried) + " cases: " + failure.substr(0, 400));
}

inline void expect_noticed(const char* fault, const std::function<void()>& property) {
  expect_noticed(fault, kMutantCases, property);
}

}  // namespace lockstep::testing
