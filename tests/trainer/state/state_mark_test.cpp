#include "trainer/state/state_mark.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

TEST(StateMark, NamesTheFirstShardThatWasWritten) {
  TrainingRun run(testing::small_job(), testing::small_llama_on("dp_replicate=2,tp=3"));
  StateMark mark;
  mark.set(run.state());
  EXPECT_EQ(mark.first_change(run.state()), "");
  for (const auto& entry : run.state())
    for (const auto& [prefix, tensor] : entry.tensors()) {
      const at::NoGradGuard no_grad;
      const auto& shards = sharded(tensor).shards()->whole();
      for (size_t rank = 0; rank < shards.size(); ++rank) {
        if (shards[rank].numel() == 0) continue;
        const auto element = shards[rank].view({-1}).narrow(0, shards[rank].numel() - 1, 1);
        const auto before = element.clone();
        element.add_(1);
        EXPECT_EQ(mark.first_change(run.state()), prefix + entry.name + " on rank " + std::to_string(rank));
        element.copy_(before);
      }
    }
  EXPECT_EQ(mark.first_change(run.state()), "");
  run.step(1, testing::batch_for(testing::small_job(), 1), 1e-2);
  EXPECT_NE(mark.first_change(run.state()), "");
}

}  // namespace
}  // namespace lockstep::trainer
