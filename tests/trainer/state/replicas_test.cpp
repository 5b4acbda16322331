#include "trainer/state/replicas.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "fuzz/trials/streams.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr const char* kMeshes[] = {"one device", "dp_shard=3", "dp_replicate=2,tp=3", "dp_replicate=3", "tp=2"};

std::unique_ptr<TrainingRun> make_run(const char* mesh, std::vector<int> local_ranks = {},
                                      std::shared_ptr<Transport> transport = {}) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  options.local_ranks = std::move(local_ranks);
  options.transport = std::move(transport);
  return std::make_unique<TrainingRun>(testing::small_job(), options);
}

/// Changes the lowest bit of one element.
void flip(const at::Tensor& shard, int64_t element) {
  const at::NoGradGuard no_grad;
  shard.view({-1}).narrow(0, element, 1).view(at::kInt).bitwise_xor_(1);
}

TEST(Replicas, AgreeAfterSteps) {
  for (const auto* mesh : kMeshes) {
    const auto run = make_run(mesh);
    EXPECT_EQ(replica_difference(run->state(), {}), "") << mesh;
    for (int64_t step = 1; step <= 3; ++step) run->step(step, testing::batch_for(testing::small_job(), step), 1e-2);
    EXPECT_EQ(replica_difference(run->state(), std::vector<StepScalar>{{"loss", 1}}), "") << mesh;
  }
}

/// Of every copy of every tensor; a tensor that one rank alone holds has none.
TEST(Replicas, AnyChangeShows) {
  const auto run = make_run("dp_replicate=2,tp=3");
  int64_t shards = 0;
  for (auto& entry : run->state())
    for (auto& [prefix, tensor] : entry.tensors())
      for (const auto& shard : sharded(tensor).shards()->whole()) {
        if (shard.numel() == 0) continue;
        flip(shard, shard.numel() - 1);
        EXPECT_THAT(replica_difference(run->state(), {}), HasSubstr("copies of " + prefix + entry.name + "["));
        flip(shard, shard.numel() - 1);
        ++shards;
      }
  EXPECT_GT(shards, 100);
  EXPECT_EQ(replica_difference(run->state(), {}), "");
}

/// After every step: what drifts in optimizer state shows there after the next one.
TEST(Replicas, OptimizerStateOnlyIfAsked) {
  const auto run = make_run("dp_replicate=2");
  flip(sharded(run->state()[0].slots[0].tensor).shards()->whole()[1], 3);
  EXPECT_EQ(replica_difference(run->state(), {}, Copies::kParameters), "");
  EXPECT_THAT(replica_difference(run->state(), {}), HasSubstr("copies of optimizer.mean."));
  flip(sharded(run->state()[0].value).shards()->whole()[1], 3);
  EXPECT_THAT(replica_difference(run->state(), {}, Copies::kParameters), HasSubstr("on rank 1"));
}

/// What differs as it is written shows, also if it is the same again later; what was forgotten does not.
TEST(Replicas, DigestsAreOfWhatWasWritten) {
  const auto run = make_run("dp_replicate=2");
  ReplicaDigests digests;
  const auto& last = run->state().back();
  const auto& copy = sharded(last.value).shards()->whole()[1];
  run->on_update([&](const ParameterState& entry) {
    if (entry.name == last.name) flip(copy, 0);
    digests.add(entry, Copies::kParameters);
  });
  run->step(1, testing::batch_for(testing::small_job(), 1), 1e-2);
  EXPECT_THAT(digests.difference(run->state(), {}), HasSubstr("copies of " + last.name + "[0"));
  EXPECT_EQ(digests.difference(run->state(), {}), "") << "nothing was added";
  flip(copy, 0);
  run->step(2, testing::batch_for(testing::small_job(), 2), 1e-2);
  flip(copy, 0);
  EXPECT_EQ(digests.difference(run->state(), {}), "digests of copies differed, and no longer do");
  run->step(3, testing::batch_for(testing::small_job(), 3), 1e-2);
  digests.clear();
  EXPECT_EQ(digests.difference(run->state(), {}), "");
}

/// The same change of two copies, of two tensors that change places, and two changes that add up to nothing.
TEST(Replicas, ChangesDoNotMakeUpForEachOther) {
  const at::NoGradGuard no_grad;
  const auto run = make_run("dp_replicate=4");
  const auto& first = sharded(run->state()[0].value).shards()->whole();
  const auto shard = [&](size_t rank) { return first[rank].view({-1}); };
  for (const size_t rank : {1, 2}) flip(first[rank], 7);
  EXPECT_THAT(replica_difference(run->state(), {}), HasSubstr(", on ranks 1-2: one bit, in one element)"));
  for (const size_t rank : {1, 2}) flip(first[rank], 7);
  shard(1)[3].add_(1), shard(2)[3].sub_(1);
  EXPECT_THAT(replica_difference(run->state(), {}), HasSubstr("on ranks 1-2"));
  shard(1)[3].copy_(shard(0)[3]), shard(2)[3].copy_(shard(0)[3]);
  const auto mean = run->state()[0].slots[0].tensor, square = run->state()[0].slots[1].tensor;
  sharded(mean).shards()->whole()[3].fill_(2), sharded(square).shards()->whole()[3].fill_(3);
  for (const size_t rank : {0, 1, 2})
    sharded(mean).shards()->whole()[rank].fill_(3), sharded(square).shards()->whole()[rank].fill_(2);
  EXPECT_THAT(replica_difference(run->state(), {}), HasSubstr("copies of optimizer.mean."));
}

TEST(Replicas, SaysWhoIsOddAndWhere) {
  const at::NoGradGuard no_grad;
  const auto run = make_run("dp_replicate=3");
  const auto entry = run->state()[1];
  sharded(entry.value).shards()->whole()[2].view({-1})[5].fill_(9);
  EXPECT_THAT(replica_difference(run->state(), {}),
              MatchesRegex("copies of .+ = 9, the first copy: .+ elements wrong, on rank 2: one element\\)"));
}

/// What each process has computed for itself, and what lies in its memory alone.
TEST(Replicas, DifferInManyProcesses) {
  const auto answers_of = [](bool drifts, double rate_of_last) {
    const auto transports = testing::connected_transports(3, testing::StreamKind::kMemory, std::chrono::seconds(60));
    std::vector<std::future<std::string>> ranks;
    for (int rank = 0; rank < 3; ++rank)
      ranks.push_back(std::async(std::launch::async, [&, rank] {
        const auto run = make_run("dp_replicate=3", {rank}, transports[static_cast<size_t>(rank)]);
        if (drifts && rank == 1) flip(sharded(run->state()[0].value).shards()->whole()[0], 11);
        const std::vector<StepScalar> numbers{{"loss", 0.5}, {"learning_rate", rank == 2 ? rate_of_last : 0.25}};
        return replica_difference(run->state(), numbers);
      }));
    std::vector<std::string> answers;
    for (auto& rank : ranks) answers.push_back(rank.get());
    EXPECT_THAT(answers, ::testing::Each(answers[0]));
    return answers[0];
  };
  EXPECT_EQ(answers_of(false, 0.25), "");
  EXPECT_EQ(answers_of(false, 0.125), "learning_rate = 0x1p-3 on rank 2, learning_rate = 0x1p-2 on rank 0");
  EXPECT_THAT(answers_of(true, 0.25), HasSubstr("on rank 1: one bit, in one element)"));
}

}  // namespace
}  // namespace lockstep::trainer
