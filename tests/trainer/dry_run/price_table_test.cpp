// What canonical numerics sends beside native: closed forms of the tree (docs/numerics.md has the measured table).
#include "trainer/dry_run/price_table.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kLayers = 2, kWidth = 256, kRows = 8, kLength = 256;

/// Sums over 8 head groups or 8 pieces of the feed-forward, each of whole leaves.
models::LlamaOptions even_options(int64_t vocabulary) {
  models::LlamaOptions options;
  options.width = options.hidden = kWidth;
  options.layers = kLayers;
  options.heads = options.key_value_heads = 8;
  options.vocabulary = vocabulary;
  options.length = kLength;
  options.cut_between_leaves = true;
  return options;
}

PriceTable prices_on(const char* mesh, int64_t vocabulary = 2048, int64_t local = kRows,
                     Job job = testing::native_job()) {
  job.numerics.mode = "canonical";
  job.training.seq_len = kLength;
  job.training.global_batch_size = kRows;
  job.training.local_batch_size = local;
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = [vocabulary] { return std::make_unique<models::Llama>(even_options(vocabulary)); };
  return price_table(job, options);
}

Price row(const PriceTable& prices, const std::string& axis, CollectiveKind kind) {
  for (const auto& price : prices.rows)
    if (price.axis == axis && price.kind == kind) return price;
  ADD_FAILURE() << axis << " " << to_text(kind);
  return {};
}

TEST(PriceTable, PowersOfTwoSendWhatNativeSends) {
  for (const char* mesh :
       {"dp_shard=2", "dp_shard=8", "tp=2", "tp=4", "tp=8", "dp_shard=2,tp=2", "dp_replicate=2,dp_shard=2,tp=2"}) {
    const auto prices = prices_on(mesh);
    EXPECT_TRUE(prices.gathered.empty()) << mesh;
    EXPECT_NEAR(prices.ratio(), 1, 0.01) << mesh;
    for (const auto& price : prices.rows) {
      EXPECT_TRUE(price.nodes <= 0 || price.nodes >= 1) << mesh << " " << price.axis;
      EXPECT_LE(price.nodes, 1) << mesh << " " << price.axis;
      const bool small = price.kind == CollectiveKind::kAllReduce;
      EXPECT_TRUE(small || price.canonical.bytes <= price.native.bytes) << mesh << " " << price.axis;
    }
  }
}

TEST(PriceTable, ReplicasReduceOnceAStepWhateverTheMicrobatches) {
  for (const char* mesh : {"dp_replicate=2", "dp_replicate=2,dp_shard=2"})
    for (const int64_t microbatches : {1, 2}) {
      const auto prices = prices_on(mesh, 2048, kRows / parse_mesh(mesh).data_parallel() / microbatches);
      EXPECT_NEAR(prices.ratio(), 1, 0.01) << mesh << " " << microbatches;
      EXPECT_LE(row(prices, "dp_replicate", CollectiveKind::kAllReduce).nodes, 1);
    }
}

/// 8 units on 3 ranks are 3 + 3 + 2: 2, 2 and 1 nodes. The head's 64 leaves are 22 + 22 + 20: 3, 4 and 2 nodes.
TEST(PriceTable, OtherNumbersOfRanksSendTheNodesOfTheirShards) {
  const auto prices = prices_on("tp=3");
  for (const auto& price : prices.rows)  // nothing is cut anew
    EXPECT_TRUE(price.kind != CollectiveKind::kAllToAll || price.canonical.count == 0) << price.axis;
  const auto scatters = row(prices, "tp", CollectiveKind::kReduceScatter);
  const double in_layers = 4 * kLayers * (5.0 / 3), embedding = 1, head = 3;
  EXPECT_NEAR(scatters.nodes, (in_layers + embedding + head) / (4 * kLayers + 2), 1e-9);
  EXPECT_GT(scatters.ratio(), 1.5);
  EXPECT_LT(scatters.ratio(), 2);
}

TEST(PriceTable, NoVocabularyCostsMoreOnPowersOfTwo) {
  for (const int64_t vocabulary : {2047, 50257})
    for (const char* mesh : {"tp=2", "tp=4"}) {
      const auto scatters = row(prices_on(mesh, vocabulary), "tp", CollectiveKind::kReduceScatter);
      EXPECT_EQ(scatters.nodes, 1) << vocabulary << " " << mesh;
      EXPECT_EQ(scatters.ratio(), 1) << vocabulary << " " << mesh;
    }
}

/// Each rank sees its part of every sample: sums of a norm's weight travel per sample, [batch, width].
TEST(PriceTable, NormWeightsTravelPerSampleUnderSequenceParallel) {
  const auto reduces = row(prices_on("tp=2"), "tp", CollectiveKind::kAllReduce);
  const double norms = 2 * kLayers + 1, share = 2 * 0.5;
  const double more = norms * kWidth * 4 * share * (kRows - 1);
  EXPECT_NEAR(reduces.canonical.bytes - reduces.native.bytes, more, 0.05 * more);
}

/// A weight's gradient is reduced for every sample that a rank works on, and gathered once.
TEST(PriceTable, WeightGradientsTravelPerSampleUnderContextParallel) {
  const double weights = 7 * kLayers * kWidth * kWidth + 2048 * kWidth;  // qkv, wo, w1, w3, w2; the head
  for (const auto& [mesh, samples, ranks] :
       {std::tuple{"cp=2", kRows, 2}, {"cp=4", kRows, 4}, {"dp_shard=8,cp=2", int64_t{1}, 2}}) {
    const auto prices = prices_on(mesh, 2048, samples);
    EXPECT_TRUE(prices.gathered.empty()) << mesh;
    const auto scatters = row(prices, "cp", CollectiveKind::kReduceScatter);
    const auto gathers = row(prices, "cp", CollectiveKind::kAllGather);
    const double share = 4 * weights * (ranks - 1) / ranks;
    EXPECT_EQ(scatters.nodes, 1) << mesh;
    EXPECT_NEAR(scatters.canonical.bytes - scatters.native.bytes, static_cast<double>(samples) * share, 1) << mesh;
    EXPECT_NEAR(gathers.canonical.bytes - gathers.native.bytes, share, 1) << mesh;
  }
}

/// In 2 bytes where the ranks' nodes are rounded, in 4 where some are not; native numerics reduces in 4.
TEST(PriceTable, RoundedLevelsTravelInTwoBytes) {
  auto job = testing::native_job();
  job.training.mixed_precision_param = "bfloat16";
  const auto ratio = [&](const char* mesh, int64_t levels) {
    job.numerics.rounded_levels = levels;
    return row(prices_on(mesh, 2048, kRows, job), "tp", CollectiveKind::kReduceScatter).ratio();
  };
  EXPECT_EQ(ratio("tp=2", 0), 1);
  const double products = 4 * kLayers + 1, embedding = 1, all = products + embedding;
  EXPECT_NEAR(ratio("tp=2", 1), (products / 2 + embedding) / all, 1e-9);
  EXPECT_NEAR(ratio("tp=4", 2), (products / 2 + embedding) / all, 1e-9);
  EXPECT_EQ(ratio("tp=4", 1), 1);
}

TEST(PriceTable, NativeNumericsCostNothing) {
  auto job = testing::native_job();
  TrainingRun::Options options;
  options.mesh = parse_mesh("dp_shard=2");
  options.make_model = testing::small_llama;
  EXPECT_EQ(price_table(job, options).ratio(), 1);
}

TEST(PriceTable, RatiosOfNothingAreOne) {
  PriceTable prices;
  EXPECT_EQ(prices.ratio(), 1);
  prices.canonical_bytes = 3;
  EXPECT_EQ(prices.ratio(), std::numeric_limits<double>::infinity());
  prices.native_bytes = 2;
  EXPECT_EQ(prices.ratio(), 1.5);
}

}  // namespace
}  // namespace lockstep::trainer
