// The strides of shards follow those of the global tensor, whatever gave them: what may be viewed on one device may be
// on a mesh.
#include "runtime/tensor/memory_order.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "runtime/redistribution/redistribute.h"

namespace lockstep::testing {
namespace {

class MemoryOrder : public ::testing::Test {
 protected:
  at::Tensor on_mesh(const at::Tensor& plain, const char* text) const {
    return distribute(plain, Layout::parse(mesh_, text));
  }
  const TensorSpec& spec(c10::IntArrayRef sizes, c10::IntArrayRef strides, const char* layout) const {
    return *mesh_.specs().intern(Layout::parse(mesh_, layout), sizes, strides, at::kFloat);
  }

  std::unique_ptr<World> world_ = simulated_world({{"tp", 2}});
  const Mesh& mesh_ = world_->mesh("tp=2");
};

/// A move gives contiguous shards; the op that asked for it gives a result with the strides of its operand.
TEST_F(MemoryOrder, ViewsAResultWhoseOperandWasMoved) {
  const auto plain = exact_tensor({2, 3});
  for (const char* text : {"[tp=P(sum)]", "[tp=S(0)]", "[tp=S(1)]", "[tp=R]"}) {
    const auto result = 2 - on_mesh(plain, text).t();
    EXPECT_EQ(difference(result.t().view({-1}), (2 - plain.t()).t().view({-1}), {}, true), "") << text;
    EXPECT_ANY_THROW(result.view({-1})) << text;
  }
}

TEST_F(MemoryOrder, ViewsWhatWasMovedWithoutACopy) {
  const auto plain = exact_tensor({2, 3, 4});
  const auto& alone = world_->mesh("alone=1,tp=2");
  for (const char* text : {"[alone=P(sum), tp=R]", "[alone=R, tp=R]", "[alone=S(0), tp=R]"}) {
    const auto turned = distribute(plain, Layout::parse(alone, text)).transpose(0, 1);
    for (const char* to : {"[alone=R, tp=R]", "[alone=R, tp=S(0)]", "[alone=S(1), tp=S(0)]"}) {
      const auto moved = redistribute(turned, Layout::parse(alone, to));
      EXPECT_EQ(difference(moved.view({24}), plain.transpose(0, 1).reshape({24}), {}, true), "") << text << to;
    }
  }
}

TEST_F(MemoryOrder, HasGapsOnlyWhereADimensionIsCut) {
  const auto whole = at::zeros({4, 6, 2});
  EXPECT_TRUE(is_in_memory_order(spec({4, 6, 2}, {12, 2, 1}, "[tp=S(1)]"), whole.narrow(1, 3, 3)));
  EXPECT_FALSE(is_in_memory_order(spec({4, 3, 2}, {6, 2, 1}, "[tp=R]"), whole.narrow(1, 3, 3)));
  EXPECT_TRUE(is_in_memory_order(spec({4, 6}, {6, 1}, "[tp=R]"), whole.select(2, 1))) << "as far apart everywhere";
}

TEST_F(MemoryOrder, IsThatOfTheGlobalStrides) {
  const auto& turned = spec({4, 3}, {1, 4}, "[tp=S(0)]");
  EXPECT_TRUE(is_in_memory_order(turned, at::zeros({3, 2}).t()));
  EXPECT_FALSE(is_in_memory_order(turned, at::zeros({2, 3})));
  EXPECT_TRUE(is_in_memory_order(turned, at::zeros({0, 3}))) << "without elements";
  const auto shard = exact_tensor({2, 3}), ordered = in_memory_order(turned, shard);
  EXPECT_TRUE(at::equal(shard, ordered));
  EXPECT_TRUE(is_in_memory_order(turned, ordered));
}

TEST_F(MemoryOrder, RepeatsWhatTheGlobalTensorRepeats) {
  const auto& repeated = spec({4, 3}, {0, 1}, "[tp=S(0)]");
  EXPECT_TRUE(is_in_memory_order(repeated, at::zeros({3}).expand({2, 3})));
  EXPECT_FALSE(is_in_memory_order(repeated, at::zeros({2, 3})));
  const auto shard = exact_tensor({3}).expand({2, 3});
  const auto ordered = in_memory_order(repeated, shard.contiguous());
  EXPECT_TRUE(at::equal(shard, ordered));
  EXPECT_EQ(ordered.strides(), c10::IntArrayRef({0, 1}));
}

TEST_F(MemoryOrder, ViewsOfRepeatedElementsThatMovedAreTaken) {
  const auto merge = [](const at::Tensor& x) { return x.expand({2, 1, 1}).view({2}).expand({2, 2}).view({4}); };
  const auto& one = world_->mesh("one=1,tp=2");
  const auto plain = exact_tensor({1, 1});
  for (const char* layout : {"[one=S(1), tp=R]", "[one=S(1), tp=S(1)]", "[one=P(sum), tp=S(0)]"})
    EXPECT_EQ(difference(merge(distribute(plain, Layout::parse(one, layout))), merge(plain), {}, true), "") << layout;
}

TEST_F(MemoryOrder, AWriteThroughAMovedViewOfRepeatedElementsArrives) {
  const auto write = [](const at::Tensor& x) {
    x.expand({2, 6}).narrow(1, 1, 4).select(0, 1).mul_(2);
    return x;
  };
  const auto plain = exact_tensor({1, 6}) + 1;
  const auto on_mesh =
      write(distribute(plain.clone(), Layout::parse(world_->mesh("alone=1,tp=2"), "[alone=R, tp=S(1)]")));
  EXPECT_EQ(difference(on_mesh, write(plain.clone()), {}, true), "");
}

TEST_F(MemoryOrder, KeepsTheNodesOfASumOutermost) {
  const auto& sum = spec({4, 3}, {1, 4}, "[tp=P(sum:8/2)]");
  const auto ordered = in_memory_order(sum, exact_tensor({2, 4, 3}));
  EXPECT_EQ(ordered.strides(), c10::IntArrayRef({12, 1, 4}));
  EXPECT_TRUE(is_in_memory_order(sum, ordered));
  EXPECT_FALSE(is_in_memory_order(sum, exact_tensor({2, 4, 3})));
}

}  // namespace
}  // namespace lockstep::testing
