#include "runtime/context/op_id.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(RandomStreams, StartAnewWithEachMicrobatchAndModuleCall) {
  begin_microbatch(1, 0);
  const auto top = next_random_stream();
  EXPECT_NE(next_random_stream(), top);
  begin_microbatch(1, 1);
  EXPECT_EQ(next_random_stream(), top);
  const auto in_module = [] {
    const ModuleScope scope("layers.0");
    return next_random_stream();
  };
  const auto first = in_module();
  EXPECT_NE(first, top);
  EXPECT_EQ(in_module(), first);  // recomputation
  begin_microbatch(2, 0);
  EXPECT_NE(in_module(), first);
}

TEST(OpIds, CountOccurrencesPerPlace) {
  begin_microbatch(4, 2);
  const PhaseScope phase(Phase::kForward);
  EXPECT_EQ(next_op_id("mm").text(), "step 4, microbatch 2, forward, mm #0");
  EXPECT_EQ(next_op_id("mm").text(), "step 4, microbatch 2, forward, mm #1");
  const ModuleScope scope("head");
  EXPECT_EQ(next_op_id("mm").text(), "step 4, microbatch 2, forward, head, mm #0");
}

}  // namespace
}  // namespace lockstep
