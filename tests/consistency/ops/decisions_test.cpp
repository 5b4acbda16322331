#include "consistency/ops/decisions.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/run_context.h"

namespace lockstep {
namespace {

/// The order of four scores, and of what is no score; on so many ranks.
Decisions decisions_of(const std::vector<double>& scores, int64_t ranks,
                       const std::vector<int64_t>& numbers = {3, 1, 2}) {
  RunContext context;
  const RunContext::Use use(context);
  const auto world = testing::simulated_world({{"dp", ranks}});
  const auto& mesh = world->mesh({{"dp", ranks}});
  const auto x = at::tensor(scores).view({2, 2});
  Decisions decisions;
  const ObserverScope scope(world->observers(), decisions);
  const auto sharded = distribute(x, Layout::parse(mesh, "[dp=S(0)]"));
  at::sort(sharded, /*stable=*/true, 1, /*descending=*/true);
  at::sort(distribute(at::tensor(numbers), Layout::replicated(mesh)), /*stable=*/true, 0, /*descending=*/false);
  return decisions;
}

TEST(Decisions, AreTheSameWhereScoresHaveOneOrder) {
  EXPECT_EQ(decisions_of({1, 2, 4, 3}, 1).first_other(decisions_of({1.5, 1.6, 9, 3}, 2)), "");
}

TEST(Decisions, NameTheOpWhoseOrderIsAnother) {
  EXPECT_EQ(decisions_of({1, 2, 4, 3}, 1).first_other(decisions_of({1, 2, 3, 3.0001}, 2)),
            "step 0, microbatch 0, init, sort.stable #0");
}

/// Whole numbers that differ are no roundings' work.
TEST(Decisions, AreMadeOfFloats) {
  EXPECT_EQ(decisions_of({1, 2, 4, 3}, 1).first_other(decisions_of({1, 2, 4, 3}, 2, {1, 2, 3})), "");
}

}  // namespace
}  // namespace lockstep
