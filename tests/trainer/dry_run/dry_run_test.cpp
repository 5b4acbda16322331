// What a dry run says of every rank, against what the ranks of a real run hold and post.
#include "trainer/dry_run/dry_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transport/simulated.h"
#include "runtime/transport/wrapper.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using Posted = std::map<int, std::array<double, kCollectiveKinds>>;

/// Adds up the payloads that each rank posts, per kind of collective.
class CountingTransport final : public TransportWrapper {
 public:
  CountingTransport() : TransportWrapper(std::make_shared<SimulatedTransport>(3)) {}
  void post(Message message) override {
    posted[message.source][message.header.kind] += static_cast<double>(message.header.bytes);
    inner_->post(std::move(message));
  }

  Posted posted;
};

TrainingRun::Options options_on(const char* mesh) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  return options;
}

Job job_for(const char* mesh) {
  auto job = testing::native_job();
  job.training.local_batch_size = 12 / parse_mesh(mesh).data_parallel();
  return job;
}

struct Real {
  std::map<int, double> held;
  Posted posted;
};

Real run_really(const Job& job, TrainingRun::Options options) {
  const auto transport = std::make_shared<CountingTransport>();
  options.transport = transport;
  TrainingRun run(job, options);
  Real real;
  for (const auto& entry : run.state())
    for (const auto& [prefix, tensor] : entry.tensors())
      for (const int rank : layout_of(tensor).mesh().ranks())
        real.held[rank] +=
            static_cast<double>(sharded(tensor)
                                    .shards()
                                    ->whole()[static_cast<size_t>(layout_of(tensor).mesh().local_index(rank))]
                                    .nbytes());
  transport->posted.clear();
  run.step(1, testing::batch_for(job, 1), 1e-3);
  real.posted = transport->posted;
  return real;
}

void expect_alike(const Job& job, const TrainingRun::Options& options) {
  const auto dry = dry_run(job, options);
  auto real = run_really(job, options);
  size_t ranks = 0;
  for (const auto& each : dry.classes) {
    ranks += each.ranks.size();
    for (const int rank : each.ranks) {
      EXPECT_EQ(each.state_bytes, real.held.at(rank)) << rank;
      for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllToAll,
                              CollectiveKind::kTransfer})
        EXPECT_NEAR(each.sent_of(kind), real.posted[rank][static_cast<size_t>(kind)], 1e-6)
            << "rank " << rank << " " << to_text(kind);
    }
  }
  EXPECT_EQ(ranks, real.held.size());
}

class DryRunOn : public ::testing::TestWithParam<const char*> {};

TEST_P(DryRunOn, SaysWhatEveryRankHoldsAndSends) { expect_alike(job_for(GetParam()), options_on(GetParam())); }

/// Three heads and twice as many leaves of the feed-forward: ranks send one node or several.
TEST_P(DryRunOn, CountsTheNodesThatRanksSendUnderCanonicalNumerics) {
  auto job = job_for(GetParam());
  job.numerics.mode = "canonical";
  job.training.seq_len = 96;
  auto options = options_on(GetParam());
  options.make_model = [] {
    auto model = testing::small_llama_options();
    model.width = 96;
    model.heads = 3;
    model.hidden = 192;
    model.vocabulary = 256;
    model.length = 96;
    model.layers = 1;
    model.cut_between_leaves = true;
    return std::make_unique<models::Llama>(model);
  };
  expect_alike(job, options);
}

TEST_P(DryRunOn, TheMeanOverRanksIsTheTraffic) {
  const auto dry = dry_run(job_for(GetParam()), options_on(GetParam()));
  for (const auto& [axis, kinds] : dry.traffic.by_axis())
    for (size_t kind = 0; kind < kCollectiveKinds; ++kind) {
      double sum = 0, ranks = 0;
      for (const auto& each : dry.classes) {
        const auto count = static_cast<double>(each.ranks.size());
        const auto found = each.sent.find(axis);
        sum += found == each.sent.end() ? 0 : count * found->second[kind];
        ranks += count;
      }
      EXPECT_NEAR(sum / ranks, kinds[kind].bytes, 1e-6 * (1 + kinds[kind].bytes)) << axis << " " << kind;
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, DryRunOn,
                         ::testing::Values("dp_shard=2", "tp=2", "tp=3", "dp_shard=4", "dp_shard=6", "dp_shard=2,tp=3",
                                           "dp_replicate=2,dp_shard=3", "cp=3", "dp_shard=2,cp=2,tp=2"));

/// Each stage's ranks hold and send their own; the table above is of one rank of each stage together.
class DryRunOfPipelines : public ::testing::TestWithParam<const char*> {};

TEST_P(DryRunOfPipelines, SaysWhatEveryRankHoldsAndSends) {
  for (const char* schedule : {"1F1B", "GPipe"}) {
    auto job = job_for(GetParam());
    job.parallelism.pipeline_parallel_schedule = schedule;
    expect_alike(job, options_on(GetParam()));
    job.numerics.mode = "canonical";
    expect_alike(job, options_on(GetParam()));
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, DryRunOfPipelines,
                         ::testing::Values("pp=2", "pp=3,tp=2", "pp=2,dp_shard=2,cp=2", "pp=4,dp_replicate=2"));

/// Each part of a sequence sends what passes by it.
TEST(DryRunOfRings, SaysWhatEveryRankHoldsAndSends) {
  for (const char* mesh : {"cp=2", "cp=4", "dp_shard=2,cp=2,tp=3", "pp=2,cp=2"}) {
    auto job = job_for(mesh);
    job.parallelism.context_parallel_rotate_method = kRing;
    expect_alike(job, options_on(mesh));
  }
}

TEST(DryRun, RanksWithEqualShardsAreOneClass) {
  auto options = options_on("dp_replicate=2,tp=3");  // 3 key-value heads; 29 tokens of vocabulary: 10 + 10 + 9
  const auto dry = dry_run(job_for("dp_replicate=2,tp=3"), options);
  ASSERT_EQ(dry.classes.size(), 2u);
  EXPECT_EQ(dry.classes[0].ranks, (std::vector<int>{0, 1, 3, 4}));
  EXPECT_EQ(dry.classes[1].ranks, (std::vector<int>{2, 5}));
  const double missing_rows = 2 * 3 * 24 * 4;  // a row of the embedding and one of the head, with two moments, float32
  EXPECT_EQ(dry.classes[0].state_bytes - dry.classes[1].state_bytes, missing_rows);
}

}  // namespace
}  // namespace lockstep::trainer
