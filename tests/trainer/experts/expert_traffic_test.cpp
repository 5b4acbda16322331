// What experts send in a step, against closed forms: every token chooses every expert, so that all sizes are known
// beforehand. `lockstep train --dry-run` prints the same.
#include <gtest/gtest.h>

#include "models/families/moe.h"
#include "tests/support/small_models.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kLayers = 2, kWidth = 32, kHidden = 64, kVocabulary = 48, kHeads = 4, kRows = 8, kLength = 16,
                  kExperts = 4;

std::unique_ptr<models::Model> model_of_all_experts() {
  models::MoeOptions options;
  options.dense.width = kWidth, options.dense.layers = kLayers, options.dense.vocabulary = kVocabulary;
  options.dense.heads = options.dense.key_value_heads = kHeads, options.dense.length = kLength;
  options.experts.count = options.experts.per_token = kExperts, options.experts.hidden = kHidden;
  return std::make_unique<models::Moe>(options);
}

Traffic step_on(const char* mesh, bool meta = false) {
  auto job = testing::native_job();
  job.model.name = "moe";
  job.training.seq_len = kLength;
  job.training.global_batch_size = job.training.local_batch_size = kRows;
  job.parallelism.strict = true;
  job.parallelism.fsdp_reshard_after_forward = "always";
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.meta = meta;
  options.make_model = model_of_all_experts;
  TrainingRun run(job, options);
  run.world().traffic().clear();
  run.step(1, testing::batch_for(job, 1, kVocabulary), 1e-3);
  return run.world().traffic();
}

/// Rows of all experts: of the ranks that `parts` names together, one's.
constexpr double rows(int64_t parts) { return 1.0 * kRows * kLength * kExperts / static_cast<double>(parts); }
constexpr double kRowBytes = 4 * kWidth, kCellBytes = 1;

/// To the experts and back, forward and backward: before the rows a byte for each cell.
void expect_rows_go_and_come(const TrafficCount& traffic, double rows_sent) {
  EXPECT_EQ(traffic.count, kLayers * 4 * 2);
  EXPECT_EQ(traffic.bytes, kLayers * 4 * rows_sent * (kRowBytes + kCellBytes));
}

TEST(ExpertTraffic, HalfOfARanksRowsGoToTwoRanks) {
  const auto traffic = step_on("dp_shard=2,ep=2");
  expect_rows_go_and_come(traffic.on("dp_shard", CollectiveKind::kAllToAll), rows(2) / 2);
}
TEST(ExpertTraffic, ThreeQuartersGoToFour) {
  expect_rows_go_and_come(step_on("dp_shard=4,ep=4").on("dp_shard", CollectiveKind::kAllToAll), rows(4) * 3 / 4);
}
TEST(ExpertTraffic, PositionsGoAsSamplesDo) {
  expect_rows_go_and_come(step_on("cp=2,ep=2").on("cp", CollectiveKind::kAllToAll), rows(2) / 2);
}
TEST(ExpertTraffic, PositionsOfATensorAxisGo) {
  expect_rows_go_and_come(step_on("tp=2,ep=2").on("tp", CollectiveKind::kAllToAll), rows(2) / 2);
}

/// One axis after the other: the second moves what the first has brought.
TEST(ExpertTraffic, TwoAxesMoveRowsOneAfterTheOther) {
  const auto traffic = step_on("dp_shard=2,cp=2,ep=4");
  expect_rows_go_and_come(traffic.on("dp_shard", CollectiveKind::kAllToAll), rows(4) / 2);
  expect_rows_go_and_come(traffic.on("cp", CollectiveKind::kAllToAll), rows(4) / 2);
}

constexpr double kExpertElements = kLayers * 3.0 * kExperts * kWidth * kHidden;
constexpr double kDenseElements =
    2.0 * kVocabulary * kWidth + kWidth + kLayers * (4.0 * kWidth * kWidth + 2 * kWidth + kExperts * kWidth);

/// Experts that dp_shard divides are where they are used: neither they nor their gradients travel.
TEST(ExpertTraffic, DividedExpertsAreNotGathered) {
  const auto divided = step_on("dp_shard=2,ep=2"), whole = step_on("dp_shard=2");
  const double table = kVocabulary * kWidth;  // which backward does not read
  for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const double passes = kind == CollectiveKind::kAllGather ? 2 : 1, unread = passes - 1;
    EXPECT_EQ(divided.on("dp_shard", kind).bytes, 4 * (passes * kDenseElements - unread * table) / 2);
    EXPECT_EQ(whole.on("dp_shard", kind).bytes, 4 * (passes * (kDenseElements + kExpertElements) - unread * table) / 2);
  }
  EXPECT_EQ(whole.on("dp_shard", CollectiveKind::kAllToAll).count, 0);
}

TEST(ExpertTraffic, NorAreThoseThatFurtherAxesDivide) {
  const double table = kVocabulary * kWidth;
  for (const char* mesh : {"dp_shard=2,cp=2,ep=4", "dp_shard=2,tp=2,ep=4", "dp_shard=2,tp=2"}) {
    const bool divided = parse_mesh(mesh).ep > 1, is_cut = parse_mesh(mesh).tp > 1;
    const auto gathered = step_on(mesh).on("dp_shard", CollectiveKind::kAllGather);
    const double norms =
        kWidth * (1 + 2 * kLayers) + kLayers * kExperts * kWidth;  // and routers, which tp does not cut
    const double cut = kDenseElements - norms, share = is_cut ? 2 : 1;
    const double experts = divided ? 0 : 2 * kExpertElements / share;
    EXPECT_EQ(gathered.bytes, 4 * (2 * (norms + cut / share) - table / share + experts) / 2) << mesh;
  }
}

/// Of a part of dp_shard rows go within it; a rank of the other part has as many experts' gradients to add to them.
TEST(ExpertTraffic, APartOfTheShardAxisMovesRowsAndTheRestSums) {
  const auto part = step_on("dp_shard=4,ep=2");
  expect_rows_go_and_come(part.on("dp_shard_in_ep", CollectiveKind::kAllToAll), rows(4) / 2);
  EXPECT_EQ(part.on("dp_shard", CollectiveKind::kAllToAll).count, 0);
  const double table = kVocabulary * kWidth;  // which backward does not read
  for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const double passes = kind == CollectiveKind::kAllGather ? 2 : 1, unread = passes - 1;
    const double dense = passes * kDenseElements - unread * table, experts = passes * kExpertElements / 2;
    EXPECT_EQ(part.on("dp_shard", kind).bytes, 4 * (dense / 4 + experts / 2)) << to_text(kind);
    EXPECT_EQ(part.on("dp_shard_in_ep", kind).bytes, 4 * dense / 2) << to_text(kind);
  }
}

/// Matrices that tp cuts take all its ranks' rows: those are gathered, and what they give is reduced to positions.
TEST(ExpertTraffic, CutMatricesGatherRows) {
  const auto cut = step_on("tp=2"), divided = step_on("tp=2,ep=2");
  for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
    const auto here = cut.on("tp", kind), there = divided.on("tp", kind);
    const bool gathers = kind == CollectiveKind::kAllGather;
    EXPECT_EQ(here.count - there.count, kLayers * 2 * (gathers ? 2 : 1)) << to_text(kind);  // cells are gathered alone
    EXPECT_EQ(here.bytes - there.bytes, kLayers * 2 * rows(2) * (kRowBytes + (gathers ? kCellBytes : 0)))
        << to_text(kind);
  }
}

/// Before anything is computed, tokens are taken to choose evenly: so they do here.
TEST(ExpertTraffic, IsTheSameWithoutValues) {
  for (const char* mesh : {"dp_shard=2,ep=2", "tp=2,ep=2", "dp_shard=2,cp=2,ep=4", "tp=2", "dp_shard=4,ep=2"}) {
    const auto dry = step_on(mesh, /*meta=*/true), wet = step_on(mesh);
    ASSERT_EQ(dry.by_axis().size(), wet.by_axis().size()) << mesh;
    for (const auto& [axis, kinds] : dry.by_axis())
      for (size_t kind = 0; kind < kCollectiveKinds; ++kind) {
        const auto other = wet.on(axis, static_cast<CollectiveKind>(kind));
        EXPECT_EQ(kinds[kind].count, other.count) << mesh << " " << axis << " " << kind;
        EXPECT_EQ(kinds[kind].bytes, other.bytes) << mesh << " " << axis << " " << kind;
      }
  }
}

}  // namespace
}  // namespace lockstep::trainer
