// A case runs on one thread in its process; here there are as many afterwards as before.
#include "replay/op_case/case_run.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/message_of.h"
#include "tests/support/sum_case.h"
#include "tests/support/threads.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;
using lockstep::testing::sum_case;

void say_threads(const LocalCall&, torch::jit::Stack&) { fail<BadInput>("{} threads", at::get_num_threads()); }

/// The table with that as the local call of a case's sum.
std::shared_ptr<const RuleSet> rules_that_say_threads() {
  const auto rules = built_in_rules();
  auto rule = *rules->find("sum.dim_IntList");
  rule.local = say_threads;
  return rules->with(rule);
}

TEST(CaseRun, IsOnOneThread) {
  const auto one = sum_case();
  for (const int threads : {1, 2, 3}) {
    const lockstep::testing::Threads scope(threads);
    EXPECT_EQ(message_of<BadInput>([&] { run_case(one, rules_that_say_threads()); }), "1 threads");
    EXPECT_EQ(at::get_num_threads(), threads);
    EXPECT_FALSE(run_case(one));
    EXPECT_EQ(at::get_num_threads(), threads);
  }
}

}  // namespace
}  // namespace lockstep::replay
