// Whole training steps of GPT-2 with dropout: loss, gradients, norm, parameters and optimizer state have one device's
// bits on meshes; fused biases are stored apart.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstring>

#include "fuzz/cases/tensors.h"
#include "models/families/gpt2.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kVocabulary = 259;

struct Case {
  const char* mesh;
  int64_t local_batch;  ///< of 8 samples, in microbatches of as many per data-parallel rank
  const char* checkpointing = "none";
  const char* compute = "float32";
  bool is_strict = true;  ///< gathers that nobody asked for are errors
  double attention_dropout = 0;
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest looks for this name
void PrintTo(const Case& value, std::ostream* out) {
  *out << value.mesh << ", local batch " << value.local_batch << ", checkpointing " << value.checkpointing << ", "
       << value.compute << ", attention drops " << value.attention_dropout;
}

constexpr Case kCases[] = {
    {"dp_shard=2", 4},
    {"dp_shard=2", 1, "full"},
    {"tp=2", 8},
    {"tp=2", 2, "none", "bfloat16"},
    {"dp_replicate=2", 4},
    {"dp_replicate=2", 2, "selective"},
    {"dp_shard=2,tp=2", 4},
    {"dp_shard=2,tp=2", 2, "full", "bfloat16"},
    {"dp_replicate=2,dp_shard=2,tp=2", 1},
    {"tp=3", 8, "none", "float32", false},
    {"dp_shard=2,cp=2", 4, "none", "float32", false},
    {"dp_shard=2,tp=2", 2, "full", "float32", true, 0.1},
    {"dp_replicate=2,tp=2", 2, "none", "bfloat16", true, 0.1},
    {"tp=3", 8, "none", "float32", false, 0.1},
    {"dp_shard=2,cp=2", 4, "selective", "float32", false, 0.1},
};

/// Sums over positions, heads, hidden units and tokens have several leaves, which meshes cut.
std::unique_ptr<models::Model> gpt2(double attention_dropout = 0) {
  models::Gpt2Options options;
  options.width = 128;
  options.layers = 2;
  options.heads = 4;
  options.hidden = 192;
  options.vocabulary = kVocabulary;
  options.positions = 96;
  options.dropout = 0.1;
  options.attention_dropout = attention_dropout;
  options.cut_between_leaves = true;
  return std::make_unique<models::Gpt2>(options);
}

Job job_of(const Case& parameters) {
  auto job = testing::small_job();
  job.training.seq_len = 65;
  job.training.global_batch_size = 8;
  job.training.local_batch_size = parameters.local_batch;
  job.training.mixed_precision_param = parameters.compute;
  job.activation_checkpoint.mode = parameters.checkpointing;
  job.parallelism.strict = parameters.is_strict;
  return job;
}

TrainingRun::Options options_on(const char* mesh, double attention_dropout = 0) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = [=] { return gpt2(attention_dropout); };
  return options;
}

class Gpt2Bits : public ::testing::TestWithParam<Case> {};

TEST_P(Gpt2Bits, AreOneDevices) {
  const auto job = job_of(GetParam());
  StepVerifier verifier(job, options_on(GetParam().mesh, GetParam().attention_dropout));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = verifier.check(step, testing::batch_for(job, step, kVocabulary), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << "step " << step << ": " << check.comparison.beyond[0].text() << "\n"
        << (check.blame ? check.blame->text() : "");
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, Gpt2Bits, ::testing::ValuesIn(kCases));

TEST(Gpt2Bits, InNativeNumericsAgreeInFloat64) {
  auto job = job_of({"dp_shard=2,tp=2", 2});
  job.numerics.mode = kNativeMode;
  StepVerifier verifier(job, options_on("dp_shard=2,tp=2", 0.1));
  for (int64_t step = 1; step <= 2; ++step)
    EXPECT_TRUE(verifier.check(step, testing::batch_for(job, step, kVocabulary), 1e-2).comparison.agrees());
}

TEST(Gpt2State, StoresFusedBiasesApartAndLoadsThemOnAnyMesh) {
  const auto job = job_of({"dp_shard=2,tp=2", 4});
  TrainingRun run(job, options_on("dp_shard=2,tp=2"));
  run.step(1, testing::batch_for(job, 1, kVocabulary), 1e-2);
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 2, ""}, run.state());
  TrainingRun other(job, options_on("tp=4"));
  load_state(folder.file("c"), other.state());
  EXPECT_EQ(state_digest(other.state()), state_digest(run.state()));
  for (const auto& entry : run.state()) {
    if (entry.name != "layers.1.attention.qkv.bias") continue;
    const auto fused = gather(entry.value).view({4, 3, 32});
    const auto bytes = Checkpoint(folder.file("c")).read("layers.1.attention.wk.bias");
    const auto keys = fused.select(1, 1).reshape({128});
    ASSERT_EQ(bytes.size(), keys.nbytes());
    EXPECT_EQ(std::memcmp(bytes.data(), keys.const_data_ptr(), bytes.size()), 0);
    return;
  }
  FAIL() << "no qkv bias";
}

}  // namespace
}  // namespace lockstep::trainer
