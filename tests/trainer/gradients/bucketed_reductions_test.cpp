// Sums go into buckets by their size, one collective each, and come back by their number.
#include "trainer/gradients/bucketed_reductions.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

using lockstep::testing::exact_tensor;

class Buckets : public ::testing::Test {
 protected:
  /// Unfinished over both ranks, each of which has the tensor itself.
  at::Tensor partial(const at::Tensor& each) {
    return from_shards({each, each}, Layout::parse(mesh_, "[dp_replicate=P(sum)]"), each.sizes().vec(), c10::kFloat);
  }

  /// Of sums of 16, 16 and 20 bytes, and one that is whole already.
  double collectives(int64_t bucket_bytes) {
    const auto before = world_.traffic().total(CollectiveKind::kAllReduce).count;
    BucketedReductions reductions(bucket_bytes, "");
    std::vector<at::Tensor> expected;
    const auto add = [&](const at::Tensor& sum, const at::Tensor& result) {
      EXPECT_EQ(reductions.add(sum, Layout::replicated(mesh_)), expected.size());
      expected.push_back(result);
    };
    const auto whole = exact_tensor({3});
    for (const int64_t size : {4, 4}) add(partial(exact_tensor({size})), exact_tensor({size}) * 2);
    add(distribute(whole, Layout::replicated(mesh_)), whole);
    add(partial(exact_tensor({5}) + 7), exact_tensor({5}) * 2 + 14);
    const auto results = reductions.finish();
    EXPECT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(at::equal(gather(results[i]), expected[i])) << i;
    EXPECT_TRUE(reductions.finish().empty());
    return static_cast<double>(world_.traffic().total(CollectiveKind::kAllReduce).count - before);
  }

  World world_{{.rank_count = 2, .numerics = Numerics::kNative}};
  const Mesh& mesh_ = world_.mesh("dp_replicate=2");
};

TEST_F(Buckets, AreFullWithSoManyBytes) {
  EXPECT_EQ(collectives(0), 3);
  EXPECT_EQ(collectives(16), 3);
  EXPECT_EQ(collectives(17), 2);
  EXPECT_EQ(collectives(32), 2);
  EXPECT_EQ(collectives(33), 1);
}

TEST_F(Buckets, AreEmptyAfterARestart) {
  BucketedReductions reductions(1000, "");
  reductions.add(partial(exact_tensor({4})), Layout::replicated(mesh_));
  reductions.restart();
  EXPECT_TRUE(reductions.finish().empty());
  EXPECT_EQ(world_.traffic().total(CollectiveKind::kAllReduce).count, 0);
}

}  // namespace
}  // namespace lockstep::trainer
