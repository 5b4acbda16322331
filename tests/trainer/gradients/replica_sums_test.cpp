// A gradient's nodes, joined on each rank in whatever order microbatches come, are the step's tree.
#include "trainer/gradients/replica_sums.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <random>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kWidth = 11;

struct Shape {
  int64_t replicas, shards, microbatches;
  int64_t leaves() const { return replicas * microbatches * shards; }
};

/// The tree as docs/numerics.md has it: the left half is the largest power of two that leaves something at the right.
at::Tensor tree_sum(const at::Tensor& leaves) {
  const int64_t count = leaves.size(0);
  if (count == 1) return leaves[0];
  int64_t left = 1;
  while (2 * left < count) left *= 2;
  return at::add(tree_sum(leaves.narrow(0, 0, left)), tree_sum(leaves.narrow(0, left, count - left)));
}

/// Numbers whose sums depend on the order, one row for each leaf of the step.
at::Tensor draw_leaves(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto leaves = at::empty({shape.leaves(), kWidth});
  auto* values = leaves.mutable_data_ptr<float>();
  for (int64_t i = 0; i < leaves.numel(); ++i)
    values[i] = std::ldexp(static_cast<float>(random() % 20000001) - 1e7F, static_cast<int>(random() % 6));
  return leaves;
}

World world_of(const Shape& shape) {
  register_backend();
  World::Options options;
  options.rank_count = static_cast<int>(shape.replicas * shape.shards);
  options.numerics = Numerics::kCanonical;
  return World(std::move(options));
}

const Mesh& mesh_of(World& world, const Shape& shape) {
  return world.mesh({{axis::kReplicate, shape.replicas}, {axis::kShard, shape.shards}});
}

/// The nodes of a microbatch: of each replica, one from each rank of dp_shard.
at::Tensor nodes_of_microbatch(const Mesh& mesh, const Shape& shape, const at::Tensor& leaves, int64_t microbatch) {
  const auto plain =
      leaves.view({shape.replicas, shape.microbatches, shape.shards, kWidth}).select(1, microbatch).contiguous();
  const Placements placements{Placement::shard(0), Placement::shard(1)};
  return distribute(plain.view({shape.replicas * shape.shards, kWidth}), Layout(mesh, placements));
}

/// What comes of the microbatches in `order`; those whose bit is set in `absent` have no gradient.
at::Tensor sum_of_microbatches(const Shape& shape, const at::Tensor& leaves, const std::vector<int64_t>& order,
                               uint64_t absent = 0) {
  auto world = world_of(shape);
  const auto& mesh = mesh_of(world, shape);
  ReplicaSums sums(mesh, shape.microbatches, shape.shards);
  for (int step = 0; step < 2; ++step) {
    for (const int64_t m : order)
      if (absent >> m & 1)
        sums.add(m, {});
      else
        sums.add_nodes(m, nodes_of_microbatch(mesh, shape, leaves, m));
    const auto sum = sums.finish();
    if (!sum.defined() || step == 1) return sum.defined() ? gather(sum).clone() : sum;
  }
  return {};
}

RC_GTEST_PROP(ReplicaSums, AreTheTreeWhateverTheOrder, ()) {
  const Shape shape{*rc::gen::inRange<int64_t>(1, 4), *rc::gen::element<int64_t>(3, 5, 6, 7, 9),
                    *rc::gen::inRange<int64_t>(2, 7)};
  auto leaves = draw_leaves(shape, *rc::gen::arbitrary<uint64_t>());
  std::vector<int64_t> order(static_cast<size_t>(shape.microbatches));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(*rc::gen::arbitrary<uint64_t>()));
  const auto absent = *rc::gen::inRange<uint64_t>(0, uint64_t{1} << shape.microbatches);
  for (int64_t m = 0; m < shape.microbatches; ++m)
    if (absent >> m & 1) leaves.view({shape.replicas, shape.microbatches, -1}).select(1, m).zero_();
  const auto sum = sum_of_microbatches(shape, leaves, order, absent);
  RC_ASSERT(sum.defined() == (absent + 1 != uint64_t{1} << shape.microbatches));
  if (sum.defined()) RC_ASSERT(at::equal(sum, tree_sum(leaves)));
}

TEST(ReplicaSums, TellSumsInAnotherOrder) {
  const Shape shape{1, 3, 2};
  const auto leaves = draw_leaves(shape, 1);
  const auto expected = sum_of_microbatches(shape, leaves, {0, 1});
  EXPECT_TRUE(at::equal(expected, tree_sum(leaves)));
  const auto by_microbatch = at::stack({tree_sum(leaves.narrow(0, 0, 3)), tree_sum(leaves.narrow(0, 3, 3))});
  EXPECT_FALSE(at::equal(expected, tree_sum(by_microbatch))) << "the numbers say nothing";
}

TEST(ReplicaSums, RefuseWhatIsNoSumOverSamples) {
  const Shape shape{1, 3, 2};
  auto world = world_of(shape);
  const auto& mesh = mesh_of(world, shape);
  ReplicaSums sums(mesh, shape.microbatches, shape.shards);
  try {
    sums.add(0, distribute(at::ones({kWidth}), Layout::replicated(mesh)));
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("is no sum over samples that 3 ranks of dp_shard have parts of: the "
                                                   "number of microbatches would change its bits. Use one microbatch, "
                                                   "dp_shard of a power of two or numerics.mode = \"native\"."));
  }
}

}  // namespace
}  // namespace lockstep::trainer
