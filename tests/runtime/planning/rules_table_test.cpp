// The table of op cases covers the table of rules; what was compared is counted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "fuzz/cases/op_cases.h"
#include "fuzz/trials/rule_properties.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

TEST(RulesTable, HasACaseForEveryRowAndARowForEveryCase) {
  std::set<std::string> rows, cases;
  for (const auto& [op, rule] : built_in_rules()->rows()) rows.insert(op);
  for (const auto& entry : op_cases()) EXPECT_TRUE(cases.insert(entry.op).second) << "two cases for " << entry.op;
  for (const auto& op : rows)
    EXPECT_TRUE(cases.contains(op)) << op << " has a row but no case: add one to tests/support/op_cases_*.cpp";
  for (const auto& op : cases) EXPECT_TRUE(rows.contains(op)) << op << " has a case but no row";
}

TEST(RulesTable, WhatARowIsFollowsFromItsDims) {
  const auto is = [](const char* dims) { return is_pointwise(Rule{"op", "family", dims}); };
  for (const char* dims : {"...->...", "...,...->...", "...->...,...", "...,...,...,...->..."})
    EXPECT_TRUE(is(dims)) << dims;
  for (const char* dims : {"", "->...", "mk,kn->mn", "...k,...->...", "...->...d", "all but dim"})
    EXPECT_FALSE(is(dims)) << dims;
  for (const auto& [op, rule] : built_in_rules()->rows()) {
    const std::string family = rule.family;
    if (family == "pointwise") EXPECT_TRUE(is_pointwise(rule)) << op;
    if (family == "matmul" || family == "attention" || family == "row") EXPECT_FALSE(is_pointwise(rule)) << op;
    EXPECT_EQ(reads_no_values(rule), family == "factory") << op;
  }
}

}  // namespace
}  // namespace lockstep::testing
