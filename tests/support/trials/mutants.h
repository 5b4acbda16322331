#pragma once
#include <gtest/gtest.h>

#include "tests/support/trials/rule_properties.h"

namespace lockstep::testing {

/// Expects a property to fail for a wrong variant of what it checks. The test's record (--gtest_output) says after how
/// many random cases, and how.
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

}  // namespace lockstep::testing
