// Why there is no case of an op.
#include "replay/op_case/case_capture.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/context/observer.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

/// Of relu, run on a mesh or on a part of one.
std::string why_there_is_none(const char* id, const std::function<const Mesh&(World&)>& mesh_of) {
  World world(World::Options{.rank_count = 4});
  const auto operand = distribute(at::ones({4}), Layout::replicated(mesh_of(world)));
  RunContext::current().begin_microbatch(1, 0);
  CaseCapture capture(id);
  const ObserverScope scope(world.observers(), capture);
  at::relu(operand);
  return capture.take("a test", {}) ? "there is one" : capture.why_not();
}

TEST(CaseCapture, SaysWhyThereIsNone) {
  const auto whole = [](World& world) -> const Mesh& { return world.mesh("pp=2,tp=2"); };
  const auto part = [&](World& world) -> const Mesh& { return whole(world).submesh("pp", 1); };
  const char *const id = "step 1, microbatch 0, init, relu #0", *const other = "step 1, microbatch 0, init, relu #1";
  EXPECT_EQ(why_there_is_none(id, whole), "there is one");
  EXPECT_EQ(why_there_is_none(other, whole), "the op did not come again");
  EXPECT_EQ(why_there_is_none(id, part), "its operands lie on no whole mesh");
}

}  // namespace
}  // namespace lockstep::replay
