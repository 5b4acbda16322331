// A run that trains on a GPU, compared as a whole; skipped, with the reason, where there is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "rng/cuda_fill.h"
#include "runtime/context/observer.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/compared_run.h"
#include "trainer/step/model_registry.h"

namespace lockstep::trainer {
namespace {

using testing::Compared;
using ::testing::HasSubstr;
using testing::WrongMoves;

class GpuRunCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = rng::cuda_unavailable_reason(); !reason.empty())
      GTEST_SKIP() << "NOT CHECKED: a step on a GPU as a whole (" << reason << ")";
  }
  static Job job() {
    auto job = testing::native_job();
    job.training.device = "cuda";
    return job;
  }
};

TEST_F(GpuRunCheck, IsWithinWhatItsRoundingsMayDo) {
  for (const char* mesh : {"one device", "dp_replicate=2", "dp_shard=3", "dp_shard=2,tp=3"}) {
    Compared compared(mesh, job());
    for (int64_t step = 1; step <= 2; ++step) {
      const auto check = compared.step(step);
      EXPECT_TRUE(check.agrees()) << mesh << ": " << check.difference;
      EXPECT_GT(check.run_over_bound, 0) << "nothing was compared";
      EXPECT_LT(check.run_over_bound, 0.5) << mesh;
    }
  }
}

/// Wide enough for what the job makes of linear maps.
std::unique_ptr<models::Model> quantised_llama(const Job& job) {
  auto sizes = testing::small_llama_options();
  sizes.width = sizes.hidden = 96, sizes.length = job.training.seq_len;
  auto model = std::make_unique<models::Llama>(sizes);
  EXPECT_FALSE(quantize_linears(job, *model).converted.empty());
  return model;
}

struct OpNames final : Observer {
  void before_op(const OpEvent& event) override { names.insert(event.id.op); }
  std::set<std::string> names;
};

/// Numbers of few bits are made of float64 ones there, too.
TEST_F(GpuRunCheck, OfQuantisedLinearMapsAgrees) {
  if (!cuda::has_kernels()) GTEST_SKIP() << "NOT CHECKED: built without the emulator of kernels";
  for (const char* recipe : {"tensorwise", "rowwise_with_gw_hp", "mxfp8_cublas"}) {
    auto quantised = job();
    const bool is_mx = recipe == std::string("mxfp8_cublas");
    quantised.model.converters = {std::string(is_mx ? kMxConverter : kFloat8Converter)};
    if (!is_mx) quantised.float8.recipe_name = recipe;
    quantised.quantize.rotated_block = is_mx ? 16 : 0;
    auto options = testing::small_llama_on("dp_shard=2");
    options.make_model = [&] { return quantised_llama(quantised); };
    StepVerifier verifier(quantised, options);
    const auto check = verifier.check(1, testing::batch_for(quantised, 1), 1e-2);
    EXPECT_TRUE(check.agrees()) << recipe << ": " << check.difference;
  }
}

/// A run that multiplies eight bits, op by op and as a whole.
TEST_F(GpuRunCheck, OfFloat8ProductsAgrees) {
  if (!cuda::has_kernels()) GTEST_SKIP() << "NOT CHECKED: built without the emulator of kernels";
  for (const char* recipe : {"tensorwise", "rowwise", "rowwise_with_gw_hp"}) {
    auto quantised = job();
    quantised.training.mixed_precision_param = "bfloat16";
    quantised.training.seq_len = 16;
    quantised.model.converters = {std::string(kFloat8Converter)};
    quantised.float8.recipe_name = recipe;
    Compared compared("dp_shard=2", quantised, [&] { return quantised_llama(quantised); });
    OpNames ops;
    const ObserverScope scope(compared.run().world().observers(), ops);
    const auto check = compared.step(1);
    EXPECT_TRUE(check.agrees()) << recipe << ": " << check.difference;
    EXPECT_GT(check.run_over_bound, 0) << "nothing was compared";
    EXPECT_TRUE(ops.names.contains("mesh::float8_linear")) << recipe;
    EXPECT_EQ(ops.names.contains("mesh::float8_weight_gradient"), std::string(recipe) != "rowwise_with_gw_hp");
  }
}

TEST_F(GpuRunCheck, AWrongMoveIsBlamedOnIt) {
  Compared compared("dp_shard=3", job());
  WrongMoves wrong("reduce_gradients", 1.01);
  const ObserverScope scope(compared.run().world().observers(), wrong);
  const auto check = compared.step(1);
  EXPECT_GT(wrong.spoiled, 0);
  EXPECT_THAT(check.difference, HasSubstr(" times what rounding may do; "));
  ASSERT_TRUE(check.blame);
  EXPECT_EQ(check.blame->op, "reduce_gradients");
}

TEST_F(GpuRunCheck, AWriteThatIsNoUpdateIsNoticed) {
  Compared compared("dp_replicate=2", job());
  compared.run().on_update([&](const ParameterState& entry) {
    const at::NoGradGuard no_grad;
    const PlainTensors guard;
    if (entry.name != "layers.1.attention.wo.weight") return;
    for (const auto& shard : sharded(entry.value).shards()->whole()) at::Tensor(shard).mul_(1 + 1e-6);
  });
  EXPECT_THAT(compared.step(1).difference, HasSubstr("layers.1.attention.wo.weight on rank 0 was written in the step"));
}

}  // namespace
}  // namespace lockstep::trainer
