#include "trainer/state/state_writes.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "models/families/moe.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using testing::batch_for;
using testing::small_job;
using testing::small_llama_on;

constexpr auto kMesh = "dp_replicate=2,tp=3";

/// Adds 1 to an element of one rank's shard.
void write_to(const at::Tensor& tensor, size_t rank) {
  const at::NoGradGuard no_grad;
  const PlainTensors guard;
  sharded(tensor).shards()->whole()[rank].view({-1}).narrow(0, 0, 1).add_(1);
}

/// What is seen in a step in which `write` is told of each update.
std::string seen_in_a_step(const Job& job, std::function<void(const ParameterState&)> write,
                           TrainingRun::Options options = small_llama_on(kMesh)) {
  TrainingRun run(job, std::move(options));
  StateWrites writes;
  std::string seen;
  for (int64_t step = 1; step <= 2 && seen.empty(); ++step) {
    const ObserverScope scope(run.world().observers(), writes);
    writes.begin(run.state());
    if (step == 2) run.on_update(write);
    run.step(step, batch_for(job, step), 1e-2);
    seen = writes.take_change(run.state());
  }
  return seen;
}

Job sgd_job() {
  auto job = small_job();
  job.optimizer.name = "SGD", job.optimizer.momentum = 0.9;
  return job;
}

TEST(StateWrites, OfUpdatesAreNone) {
  EXPECT_EQ(seen_in_a_step(small_job(), {}), "");
  EXPECT_EQ(seen_in_a_step(sgd_job(), {}), "");
}

/// Among the optimizer's ops that are watched are sums of counts, whose summands native numerics leaves in parts.
TEST(StateWrites, BesideSumsOfPartsAreSeenToo) {
  auto job = testing::native_job();
  job.training.local_batch_size = 2, job.parallelism.shard_optimizer_state = true;
  const auto seen = [&](std::function<void(const ParameterState&)> write) {
    auto options = small_llama_on("dp_replicate=2,cp=2");
    options.make_model = [] {
      models::MoeOptions moe{testing::small_llama_options(), {.count = 4, .per_token = 1, .hidden = 12}};
      moe.experts.balance_rate = 0.01;
      return std::make_unique<models::Moe>(moe);
    };
    return seen_in_a_step(job, std::move(write), std::move(options));
  };
  EXPECT_EQ(seen({}), "");
  const auto name = "layers.0.attention.wo.weight";
  EXPECT_EQ(seen([&](const ParameterState& entry) {
              if (entry.name == name) write_to(entry.value, 3);
            }),
            "layers.0.attention.wo.weight on rank 3");
}

TEST(StateWrites, AreNamedWithTensorAndRank) {
  for (const auto& job : {small_job(), sgd_job()}) {
    const std::string slot = job.optimizer.name == "SGD" ? "momentum" : "square";
    const auto name = "layers.0.attention.wo.weight";
    EXPECT_EQ(seen_in_a_step(job,
                             [&](const ParameterState& entry) {
                               if (entry.name == name) write_to(entry.value, 4);
                             }),
              "layers.0.attention.wo.weight on rank 4");
    EXPECT_EQ(seen_in_a_step(job,
                             [&](const ParameterState& entry) {
                               if (entry.name == name) write_to(entry.slot(slot), 2);
                             }),
              "optimizer." + slot + ".layers.0.attention.wo.weight on rank 2");
  }
}

/// By what an update finds, although it then writes over it.
TEST(StateWrites, BeforeTheUpdateAreSeenByIt) {
  TrainingRun run(small_job(), small_llama_on(kMesh));
  StateWrites writes;
  const ObserverScope scope(run.world().observers(), writes);
  writes.begin(run.state());
  write_to(run.state()[3].value, 5);
  run.step(1, batch_for(small_job(), 1), 1e-2);
  EXPECT_EQ(writes.take_change(run.state()), run.state()[3].name + " on rank 5");
}

TEST(StateWrites, AnotherTensorInItsPlaceIsAChange) {
  TrainingRun run(small_job(), small_llama_on(kMesh));
  StateWrites writes;
  writes.begin(run.state());
  auto state = run.state();
  state[0].value = state[0].value.clone();
  EXPECT_EQ(writes.take_change(state), state[0].name + ", another tensor than when the step began,");
}

}  // namespace
}  // namespace lockstep::trainer
