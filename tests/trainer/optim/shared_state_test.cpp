// Optimizer state that replicas share out (ZeRO-1): one device's bits with every optimizer, a rank's memory, the bytes
// that are sent, and checkpoints that go to runs that share nothing and back.
#include <gtest/gtest.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_name.h"
#include "tests/trainer/stages/two_steps.h"
#include "trainer/job/offered_names.h"
#include "trainer/state/state_checkpoint.h"

namespace lockstep::trainer {
namespace {

using testing::two_steps;

Job job_of(const std::string& optimizer, bool shares) {
  auto job = testing::small_job();
  job.numerics.mode = kCanonicalMode;
  job.training.global_batch_size = 12, job.training.local_batch_size = 2;
  job.optimizer.name = optimizer;
  if (optimizer == "SGD") job.optimizer.momentum = 0.9;
  job.optimizer.ema_decay = 0.9;
  job.parallelism.shard_optimizer_state = shares;
  return job;
}

std::unique_ptr<models::Model> tied_llama() {
  auto options = testing::small_llama_options();
  options.tied_head = true;
  return std::make_unique<models::Llama>(options);
}

constexpr const char* kMeshes[] = {
    "dp_replicate=2",     "dp_replicate=3", "dp_replicate=6,cp=2", "dp_replicate=2,tp=3", "dp_replicate=2,dp_shard=3",
    "pp=2,dp_replicate=2"};

class SharedState : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(SharedState, HasTheBitsOfOneDevice) {
  const auto [optimizer, mesh] = GetParam();
  EXPECT_EQ(two_steps(job_of(optimizer, true), mesh, tied_llama),
            two_steps(job_of(optimizer, false), "one device", tied_llama));
}

INSTANTIATE_TEST_SUITE_P(OptimizersOnMeshes, SharedState,
                         ::testing::Combine(::testing::Values("AdamW", "Adam", "SGD", "Lion", "Muon", "Ranger21"),
                                            ::testing::ValuesIn(kMeshes)));

TrainingRun run_on(const char* mesh, bool shares) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = tied_llama;
  return {job_of("AdamW", shares), std::move(options)};
}

/// Of the slots that the first rank has.
int64_t slot_elements(const TrainingRun& run) {
  int64_t elements = 0;
  for (const auto& entry : run.state())
    for (const auto& slot : entry.slots) elements += c10::multiply_integers(spec_of(slot.tensor).local_sizes[0]);
  return elements;
}

/// Mean, square and average: of each a third, rows rounded up.
TEST(SharedStateMemory, FallsWithReplicas) {
  const auto shared = run_on("dp_replicate=3", true), whole = run_on("dp_replicate=3", false);
  int64_t all = 0, thirds = 0;
  for (const auto& entry : whole.state()) {
    const auto rows = entry.value.size(0);
    all += entry.value.numel(), thirds += entry.value.numel() / rows * ((rows + 2) / 3);
  }
  EXPECT_EQ(slot_elements(whole), 3 * all);
  EXPECT_EQ(slot_elements(shared), 3 * thirds);
}

/// Of one native step on two replicas, with sizes that divide, on the axis dp_replicate.
Traffic traffic_of(bool shares, bool meta) {
  auto job = job_of("AdamW", shares);
  job.numerics.mode = "native";
  job.parallelism.strict = true;  // nothing moves without being asked to
  TrainingRun::Options options;
  options.mesh = parse_mesh("dp_replicate=2");
  options.meta = meta;
  options.make_model = [] {
    auto sizes = testing::small_llama_options();
    sizes.vocabulary = 30;
    return std::make_unique<models::Llama>(sizes);
  };
  TrainingRun run(job, std::move(options));
  run.world().traffic().clear();
  run.step(1, testing::batch_for(job, 1), 1e-3);
  return run.world().traffic();
}

/// What an all-reduce sends in two rounds is sent once before and once after the update.
TEST(SharedStateTraffic, IsThatOfAnAllReduce) {
  for (const bool meta : {false, true}) {
    const auto shared = traffic_of(true, meta), whole = traffic_of(false, meta);
    const auto on = [](const Traffic& traffic, CollectiveKind kind) { return traffic.on("dp_replicate", kind); };
    const auto scattered = on(shared, CollectiveKind::kReduceScatter),
               gathered = on(shared, CollectiveKind::kAllGather);
    const double numbers = on(shared, CollectiveKind::kAllReduce).bytes;  // loss, tokens, norm
    EXPECT_LT(numbers, 200);
    EXPECT_GT(scattered.bytes, 10'000);
    EXPECT_EQ(scattered.bytes, gathered.bytes);
    EXPECT_NEAR(scattered.bytes + gathered.bytes, on(whole, CollectiveKind::kAllReduce).bytes, 200);
    EXPECT_EQ(scattered.count, 1);
    EXPECT_EQ(gathered.count, 1);
  }
}

/// Averages that replicas share out, of a table that two stages read, are whole where a model computes with them.
TEST(SharedStateAverages, AreThoseOfOneDevice) {
  const auto loss_of = [](const char* mesh, bool shares) {
    auto run = run_on(mesh, shares);
    const auto job = job_of("AdamW", shares);
    run.step(1, testing::batch_for(job, 1), 1e-2);
    return run.evaluate(2, testing::batch_for(job, 2), /*averages=*/true).loss_sum;
  };
  for (const char* mesh : {"dp_replicate=3", "pp=2,dp_replicate=2"})
    EXPECT_EQ(loss_of(mesh, true), loss_of("one device", false)) << mesh;
}

/// One replica has nobody to share with.
TEST(SharedStateAlone, IsAsItWas) {
  auto job = job_of("AdamW", true);
  job.training.mixed_precision_param = "bfloat16";  // the mesh has an axis of one replica then
  TrainingRun::Options options;
  options.mesh = parse_mesh("tp=2");
  options.make_model = tied_llama;
  TrainingRun run(job, std::move(options));
  for (const auto& entry : run.state())
    for (const auto& slot : entry.slots) EXPECT_EQ(layout_of(slot.tensor), layout_of(entry.value)) << entry.name;
}

TEST(SharedStateCheckpoint, GoesToRunsThatShareNothingAndBack) {
  const auto batch = [](int64_t step) { return testing::batch_for(job_of("AdamW", true), step); };
  const TemporaryFolder folder;
  auto first = run_on("dp_replicate=3", true);
  first.step(1, batch(1), 1e-2);
  save_state(folder.file("shared"), {1, 12, ""}, first.state());
  auto second = run_on("dp_shard=2", false);
  load_state(folder.file("shared"), second.state());
  second.step(2, batch(2), 1e-2);
  save_state(folder.file("whole"), {2, 24, ""}, second.state());
  auto third = run_on("dp_replicate=2,tp=3", true);
  load_state(folder.file("whole"), third.state());
  third.step(3, batch(3), 1e-2);
  auto alone = run_on("one device", false);
  for (int64_t step = 1; step <= 3; ++step) alone.step(step, batch(step), 1e-2);
  EXPECT_EQ(state_digest(third.state()), state_digest(alone.state()));
}

}  // namespace
}  // namespace lockstep::trainer
