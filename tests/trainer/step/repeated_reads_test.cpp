// Parameters that are read several times: each read's gradient has a tree of its own, so that neither the mesh nor the
// number of microbatches changes a bit.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/layers.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

/// x + silu(x W) W: one module that reads W twice, or once and uses what it has read twice.
class Twice final : public models::Module {
 public:
  Twice(Module& owner, std::string name, int64_t width, bool reads_once)
      : Module(owner, std::move(name)),
        reads_once_(reads_once),
        weight_(*this, "weight", {width, width}, "embed embed", models::Initial::drawn(rng::normal(0, 0.3))) {}

  at::Tensor forward(const at::Tensor& x) {
    const auto open = scope();
    const at::Tensor first = weight_, second = reads_once_ ? first : static_cast<const at::Tensor&>(weight_);
    return x + at::linear(at::silu(at::linear(x, first)), second);
  }

 private:
  bool reads_once_;
  models::Parameter weight_;
};

class TwiceModel final : public models::Model {
 public:
  explicit TwiceModel(bool reads_once = false) : twice_(*this, "twice", 32, reads_once) {}

  at::Tensor forward(const at::Tensor& tokens) override {
    const auto x = run_block(embedding_, tokens, [this](const at::Tensor& input) { return embedding_.forward(input); });
    const auto y = run_block(twice_, x, [this](const at::Tensor& input) { return twice_.forward(input); });
    return at::linear(y, embedding_.weight());  // a third module's read of the table, outside of every block
  }
  int64_t vocabulary() const override { return 29; }
  std::vector<Module*> blocks() override { return {&embedding_, &twice_, &twice_}; }

 private:
  models::Embedding embedding_{*this, "embedding", 29, 32, models::Initial::drawn(rng::normal(0, 1))};
  Twice twice_;
};

struct Case {
  const char* mesh;
  int64_t local_batch;
  const char* checkpointing;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.mesh << ", local batch " << value.local_batch << ", checkpointing " << value.checkpointing;
}

class RepeatedReads : public ::testing::TestWithParam<Case> {};

TEST_P(RepeatedReads, HaveOneDevicesBits) {
  auto job = testing::small_job();
  job.numerics.mode = "canonical";
  job.training.global_batch_size = 8;
  job.training.local_batch_size = GetParam().local_batch;
  job.activation_checkpoint.mode = GetParam().checkpointing;
  TrainingRun::Options options;
  options.mesh = parse_mesh(GetParam().mesh);
  options.make_model = [] { return std::make_unique<TwiceModel>(); };
  StepVerifier verifier(job, options);
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = verifier.check(step, testing::batch_for(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees()) << check.comparison.beyond[0].text();
    EXPECT_EQ(check.comparison.differing_bits, 0);
  }
}

/// Nodes of two gradients, side by side, are no node of the tree over samples.
TEST(GradientsOfOneRead, AreAFormalSumThatReplicasReduceOnce) {
  auto job = testing::small_job();
  job.numerics.mode = "canonical";
  job.training.global_batch_size = 8;
  const auto digest_on = [&](const char* mesh, int64_t local_batch) {
    TrainingRun::Options options;
    options.mesh = parse_mesh(mesh);
    options.make_model = [] { return std::make_unique<TwiceModel>(/*reads_once=*/true); };
    job.training.local_batch_size = local_batch;
    TrainingRun run(job, options);
    run.step(1, testing::batch_for(job, 1), 1e-2);
    return state_digest(run.state()).text();
  };
  const auto one = digest_on("tp=1", 8);
  EXPECT_EQ(digest_on("dp_replicate=2", 4), one);
  EXPECT_EQ(digest_on("dp_shard=2", 4), one);
  EXPECT_EQ(digest_on("dp_replicate=2,dp_shard=2", 2), one);
  for (const auto& [mesh, local_batch] : {std::pair{"tp=1", 4}, {"tp=2", 2}, {"dp_shard=2", 2}, {"dp_replicate=2", 2}})
    try {
      digest_on(mesh, local_batch);
      ADD_FAILURE() << mesh << " in microbatches of " << local_batch;
    } catch (const BadInput& error) {
      EXPECT_THAT(
          error.what(),
          ::testing::HasSubstr("a parameter that the model reads once is used 2 times (its gradient is Float[32,32] "))
          << mesh;
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, RepeatedReads,
                         ::testing::Values(Case{"dp_replicate=2", 4, "none"}, Case{"dp_replicate=2", 1, "none"},
                                           Case{"dp_shard=2", 1, "full"}, Case{"dp_replicate=2,dp_shard=2", 1, "full"},
                                           Case{"tp=2", 2, "none"}));

}  // namespace
}  // namespace lockstep::trainer
