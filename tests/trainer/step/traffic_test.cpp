// Counts and bytes of collectives per step against the closed forms of FSDP (Rajbhandari et al., 2020) and of tensor
// parallelism with sequence parallelism (Korthikanti et al., 2022). They are printed by `lockstep train --dry-run`.
#include <gtest/gtest.h>

#include "tests/support/small_models.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kLayers = 3, kWidth = 32, kHidden = 64, kVocabulary = 48, kHeads = 4, kRows = 8, kLength = 16;

std::unique_ptr<models::Model> even_llama() {
  models::LlamaOptions options;
  options.width = kWidth;
  options.layers = kLayers;
  options.heads = options.key_value_heads = kHeads;
  options.hidden = kHidden;
  options.vocabulary = kVocabulary;
  options.length = kLength;
  return std::make_unique<models::Llama>(options);
}

struct Counts {
  Traffic traffic;
  TrafficCount on(const char* axis, CollectiveKind kind) const { return traffic.on(axis, kind); }
};

/// One step on meta tensors; `local` rows a microbatch and rank.
Counts step_on(const char* mesh, const char* reshard = "always", int64_t local = kRows, bool meta = true,
               bool gathers_logits = false) {
  auto job = testing::native_job();
  job.training.seq_len = kLength;
  job.training.global_batch_size = kRows;
  job.training.local_batch_size = local;
  job.parallelism.strict = true;  // nothing moves without being asked to
  job.parallelism.fsdp_reshard_after_forward = reshard;
  job.parallelism.disable_loss_parallel = gathers_logits;
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.meta = meta;
  options.make_model = even_llama;
  TrainingRun run(job, options);
  run.world().traffic().clear();
  run.step(1, testing::batch_for(job, 1, kVocabulary), 1e-3);
  return {run.world().traffic()};
}

constexpr double kLayerElements = 4.0 * kWidth * kWidth + 3.0 * kWidth * kHidden + 2 * kWidth;
constexpr double kEmbeddingElements = 1.0 * kVocabulary * kWidth;
constexpr double kHeadElements = kEmbeddingElements + kWidth;
constexpr double kAllElements = kLayers * kLayerElements + kEmbeddingElements + kHeadElements;

TEST(Traffic, FullySharedGathersABlockOnceAPassAndReducesItOnce) {
  const auto counts = step_on("dp_shard=4");
  // Backward gathers all but the embedding again, whose gradient does not need the table.
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kAllGather).count, (kLayers + 2) + (kLayers + 1));
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kAllGather).bytes,
            4 * (2 * kAllElements - kEmbeddingElements) * 3 / 4);
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kReduceScatter).count, kLayers + 2);
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kReduceScatter).bytes, 4 * kAllElements * 3 / 4);
}

/// What backward begins with is still there.
TEST(Traffic, ByDefaultTheHeadIsGatheredOnce) {
  const auto counts = step_on("dp_shard=4", "default");
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kAllGather).count, (kLayers + 2) + kLayers);
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kAllGather).bytes,
            4 * (2 * kAllElements - kEmbeddingElements - kHeadElements) * 3 / 4);
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kReduceScatter).count, kLayers + 2);
}

TEST(Traffic, WithoutReshardingEveryBlockIsGatheredOnce) {
  const auto counts = step_on("dp_shard=4", "never");
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kAllGather).count, kLayers + 2);
  EXPECT_EQ(counts.on("dp_shard", CollectiveKind::kReduceScatter).count, kLayers + 2);
}

TEST(Traffic, ReplicasReduceGradientsOnceAStepWhateverTheMicrobatches) {
  for (const int64_t local : {4, 2, 1}) {
    const auto counts = step_on("dp_replicate=2", "always", local);
    // One for the gradients, one for the loss, one for the number of valid tokens and one for whether all ranks have
    // finite numbers (both int64).
    EXPECT_EQ(counts.on("dp_replicate", CollectiveKind::kAllReduce).count, 4) << local;
    EXPECT_EQ(counts.on("dp_replicate", CollectiveKind::kAllReduce).bytes, 4 * kAllElements + 4 + 8 + 8) << local;
    EXPECT_EQ(counts.on("dp_replicate", CollectiveKind::kAllGather).count, 0);
  }
}

TEST(Traffic, TensorParallelWithSequenceParallelMatchesMegatron) {
  const auto counts = step_on("tp=2");
  const double activation = 4.0 * kRows * kLength * kWidth;
  // Forward: into attention, into the feed-forward, into the head; out of both, out of the embedding. Backward mirrors.
  EXPECT_EQ(counts.on("tp", CollectiveKind::kAllGather).count, 2 * (2 * kLayers + 1));
  EXPECT_EQ(counts.on("tp", CollectiveKind::kReduceScatter).count, 2 * (2 * kLayers + 1));
  EXPECT_EQ(counts.on("tp", CollectiveKind::kAllGather).bytes, 2 * (2 * kLayers + 1) * activation / 2);
  EXPECT_EQ(counts.on("tp", CollectiveKind::kReduceScatter).bytes, 2 * (2 * kLayers + 1) * activation / 2);
}

/// Instead of three sums of a number for each token (the maximum, the exponentials, the target's logit), and that of
/// the loss.
TEST(Traffic, WithoutLossParallelLogitsAreGatheredOnce) {
  const auto sums = step_on("tp=2"), gathers = step_on("tp=2", "always", kRows, true, /*gathers_logits=*/true);
  const double token = 4.0 * kRows * kLength;
  const auto more = [&](CollectiveKind kind) {
    const auto with = gathers.on("tp", kind), without = sums.on("tp", kind);
    return std::pair(with.count - without.count, with.bytes - without.bytes);
  };
  EXPECT_EQ(more(CollectiveKind::kAllGather), std::pair(int64_t{1}, token * kVocabulary / 2));
  EXPECT_EQ(more(CollectiveKind::kAllReduce), std::pair(int64_t{-4}, -3 * token - 4));
  EXPECT_EQ(more(CollectiveKind::kReduceScatter), std::pair(int64_t{0}, 0.0));
}

TEST(Traffic, FullyShardedTimesTensorParallelAddsNothing) {
  const auto both = step_on("dp_shard=2,tp=2"), shard = step_on("dp_shard=2"), tensor = step_on("tp=2");
  EXPECT_EQ(both.on("dp_shard", CollectiveKind::kAllGather).count,
            shard.on("dp_shard", CollectiveKind::kAllGather).count);
  EXPECT_EQ(both.on("dp_shard", CollectiveKind::kReduceScatter).count,
            shard.on("dp_shard", CollectiveKind::kReduceScatter).count);
  for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter})
    EXPECT_EQ(both.on("tp", kind).count, tensor.on("tp", kind).count);
}

TEST(Traffic, IsTheSameWithAndWithoutValues) {
  const auto dry = step_on("dp_shard=2,tp=2"), wet = step_on("dp_shard=2,tp=2", "always", kRows, /*meta=*/false);
  ASSERT_EQ(dry.traffic.by_axis().size(), wet.traffic.by_axis().size());
  for (const auto& [axis, kinds] : dry.traffic.by_axis())
    for (size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      const auto other = wet.on(axis.c_str(), static_cast<CollectiveKind>(kind));
      EXPECT_EQ(kinds[kind].count, other.count) << axis << " " << to_text(static_cast<CollectiveKind>(kind));
      EXPECT_EQ(kinds[kind].bytes, other.bytes) << axis << " " << to_text(static_cast<CollectiveKind>(kind));
    }
}

}  // namespace
}  // namespace lockstep::trainer
