// The plain way to read sharded tensors beside the collectives, and what differences of shards are told as.
#include "consistency/held_shards.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <future>

#include "consistency/difference.h"
#include "fuzz/trials/streams.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

constexpr const char* kMesh = "a=2,b=3";
constexpr const char* kLayouts[] = {"[a=R, b=R]",         "[a=S(0), b=R]",        "[a=S(0), b=S(1)]",
                                    "[a=S(1), b=S(0)]",   "[a=S(0)@1, b=S(0)@0]", "[a=P(sum), b=R]",
                                    "[a=S(0), b=P(sum)]", "[a=P(sum), b=P(sum)]", "[a=P(max), b=S(1)]"};

at::Tensor numbers() { return at::arange(1, 36, at::kFloat).view({7, 5}); }

TEST(HeldShards, AreWhatWasDistributed) {
  World world({.rank_count = 6});
  const auto& mesh = world.mesh(kMesh);
  for (const auto* text : kLayouts) {
    const auto tensor = distribute(numbers(), Layout::parse(mesh, text));
    const auto all = all_shards(local_shards(tensor));
    EXPECT_TRUE(same_bits(whole_of(all), numbers())) << text;
    EXPECT_TRUE(difference_of(all, numbers(), kBits).agrees()) << text;
  }
}

/// Each rank in a thread with a World of its own: shards of others come as messages.
TEST(HeldShards, AreTheSameInManyProcesses) {
  const auto transports = testing::connected_transports(6, testing::StreamKind::kMemory, std::chrono::seconds(60));
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < 6; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      World world({.rank_count = 6, .local_ranks = {rank}, .transport = transports[static_cast<size_t>(rank)]});
      const auto& mesh = world.mesh(kMesh);
      for (const auto* text : kLayouts) {
        const auto tensor = distribute(numbers(), Layout::parse(mesh, text));
        const auto all = all_shards(local_shards(tensor));
        EXPECT_EQ(all.ranks, mesh.ranks()) << text;
        EXPECT_TRUE(same_bits(whole_of(all), numbers())) << text;
      }
      EXPECT_EQ(world.traffic().bytes(), 0);
    }));
  for (auto& rank : ranks) rank.get();
}

/// Of every rank's shard, in one element: who is odd, who is wrong, and where.
TEST(HeldShards, AnyOddRankShows) {
  World world({.rank_count = 6});
  const auto& mesh = world.mesh(kMesh);
  for (const auto* text : kLayouts)
    for (size_t index = 0; index < 6; ++index) {
      const auto layout = Layout::parse(mesh, text);
      const auto tensor = distribute(numbers(), layout);
      const auto& shard = sharded(tensor).shards()->local_tensors()[index];
      if (shard.numel() == 0) continue;
      shard.view({-1})[0].add_(100);
      const auto all = all_shards(local_shards(tensor));
      const auto difference = difference_of(all, numbers(), kBits);
      EXPECT_FALSE(difference.agrees()) << text << " rank " << index;
      EXPECT_EQ(difference.wrong_elements, 1) << text;
      EXPECT_EQ(difference.pattern, "one element") << text;
      if (!layout.any_partial() && !difference.ranks.empty()) {
        EXPECT_EQ(difference.ranks, std::vector<int>{static_cast<int>(index)}) << text;
      }
    }
}

TEST(SameBits, GoByBitsAndStrides) {
  const auto x = at::arange(24, at::kFloat).view({4, 6});
  EXPECT_TRUE(same_bits(x.narrow(1, 2, 3), x.narrow(1, 2, 3).contiguous()));
  EXPECT_TRUE(same_bits(x.t(), x.t().contiguous()));
  EXPECT_FALSE(same_bits(x.narrow(1, 2, 3), x.narrow(1, 1, 3)));
  EXPECT_FALSE(same_bits(at::zeros({1}), -at::zeros({1}))) << "+0 and -0";
  EXPECT_FALSE(same_bits(x, x.to(at::kDouble)));
  EXPECT_FALSE(same_bits(x, x.view({6, 4})));
  EXPECT_TRUE(same_bits(at::empty({0, 3}), at::empty({0, 3})));
  EXPECT_TRUE(same_bits(at::ones({3, 4}, at::kBool).narrow(1, 0, 2), at::ones({3, 2}, at::kBool)));
  EXPECT_TRUE(same_bits(at::full({}, 3.0), at::full({}, 3.0)));
}

TEST(Damage, IsToldByItsSimplestPattern) {
  const auto pattern_of = [](const at::Tensor& candidate) {
    return difference_of(candidate, numbers(), kBits).pattern;
  };
  EXPECT_EQ(pattern_of(numbers() * 2), "times 2, everywhere");
  EXPECT_EQ(pattern_of(numbers() + 0.25), "plus 0.25, everywhere");
  EXPECT_EQ(pattern_of(at::zeros({7, 5})), "zeros, everywhere");
  EXPECT_EQ(pattern_of(numbers().flip(0)), "the same values in another order, within [0:7, 0:5]");
  EXPECT_EQ(pattern_of(at::full({7, 5}, NAN)), "NaN or infinite, everywhere");
  auto rows = numbers();
  rows.narrow(0, 2, 2).mul_(-1);
  EXPECT_EQ(pattern_of(rows), "times -1, in [2:4, 0:5]");
  auto bit = numbers();
  bit.view(at::kInt).view({-1})[8].bitwise_xor_(1 << 20);
  EXPECT_EQ(pattern_of(bit), "one bit, in one element");
}

TEST(Difference, OfSizesAndRanks) {
  EXPECT_EQ(difference_of(at::zeros({3}), at::zeros({4}), kBits).text(), ": sizes [3], one device: [4]");
  EXPECT_EQ(ranks_text({1}), "rank 1");
  EXPECT_EQ(ranks_text({0, 1, 2, 5, 7, 8}), "ranks 0-2, 5, 7-8");
  const auto integers = difference_of(at::arange(4), at::arange(4) + at::eye(4, at::kLong)[2], 1e9);
  EXPECT_EQ(integers.wrong_elements, 1) << "no tolerance for integers";
}

}  // namespace
}  // namespace lockstep
