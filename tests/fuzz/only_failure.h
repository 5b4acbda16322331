#pragma once
#include <gtest/gtest.h>

#include "fuzz/search/search.h"
#include "runtime/planning/rule.h"

/// What faults that are planted in rules, and their being found, have in common.
namespace lockstep::fuzz {

/// The second rank's part is twice what it should be.
inline void twice_on_one_rank(const LocalCall& call, torch::jit::Stack& stack) {
  call.op.callBoxed(stack);
  if (call.index == 1) stack[0].toTensor().mul_(2);
}

inline Checks of(Checks checks, const std::string& name) {
  std::erase_if(checks, [&](const Check& check) { return check.name != name; });
  return checks;
}

inline std::vector<FoundFailure> failures_of(const Checks& checks, int64_t cases) {
  SearchOptions options;
  options.seed = 7, options.seconds = 600, options.cases = cases, options.workers = 0, options.shrink_seconds = 5;
  return search(checks, options).failures;
}

inline FoundFailure only_failure(const Checks& checks, int64_t cases) {
  const auto failures = failures_of(checks, cases);
  EXPECT_EQ(failures.size(), 1u);
  return failures.empty() ? FoundFailure{} : failures[0];
}

}  // namespace lockstep::fuzz
