// Recomputing all but the dearest ops: the same bits as keeping everything, fewer ops run again than without.
#include "runtime/deferred/kept_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "trainer/state/state_digest.h"
#include "trainer/step/model_registry.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;

/// Ops that run a second time, by name.
struct Recomputed final : Observer {
  void before_op(const OpEvent& event) override {
    if (event.id.phase == Phase::kRecompute) ++counts[event.id.op];
  }
  std::map<std::string, int> counts;
};

struct Trial {
  const char* mesh;
  bool is_native = false;
  const char* dtype = "float32";
  const char* rotate_method = "allgather";
  bool is_gpt2 = false;
  int64_t local_batch = 6;
};

std::unique_ptr<models::Model> small_gpt2() {
  auto options = testing::small_gpt2_options();
  options.attention_dropout = 0.1;
  return std::make_unique<models::Gpt2>(options);
}

struct Outcome {
  std::string digest;
  std::map<std::string, int> recomputed;  ///< in the last of two steps
};

Outcome train(const Trial& trial, const char* mode, const char* option = "op") {
  auto job = trial.is_native ? testing::native_job() : testing::small_job();
  job.training.local_batch_size = trial.local_batch;
  job.training.mixed_precision_param = trial.dtype;
  job.parallelism.context_parallel_rotate_method = trial.rotate_method;
  job.activation_checkpoint.mode = mode;
  job.activation_checkpoint.selective_ac_option = option;
  auto options = testing::small_llama_on(trial.mesh);
  if (trial.is_gpt2) options.make_model = small_gpt2;
  TrainingRun run(job, options);
  run.step(1, testing::batch_for(job, 1), 1e-2);  // nobody observes
  Recomputed recomputed;
  const ObserverScope scope(run.world().observers(), recomputed);
  run.step(2, testing::batch_for(job, 2), 1e-2);
  return {state_digest(run.state()).text(), recomputed.counts};
}

TEST(KeptResults, ChangeNoBit) {
  const Trial trials[] = {{"one device"},
                          {"dp_shard=2,tp=2"},
                          {"dp_replicate=2,tp=3", true},
                          {"dp_shard=3", false, "bfloat16"},
                          {"cp=2", false, "float32", kUlysses},
                          {"cp=2,tp=2", true},
                          {"cp=2", true, "float32", kRing},
                          {"pp=2,dp_shard=2"},
                          {"dp_shard=2", false, "float32", "allgather", true, 2},
                          {"tp=2", true, "float32", "allgather", true, 3}};
  for (const auto& trial : trials) {
    const auto digest = train(trial, "none").digest;
    EXPECT_EQ(train(trial, "selective").digest, digest) << trial.mesh;
    EXPECT_EQ(train(trial, "selective", "linear").digest, digest) << trial.mesh << ", all maps";
  }
}

/// Of a layer's four linear maps (and attention) two, or none, run again (and it does not).
TEST(KeptResults, AreNotComputedAgain) {
  const Trial trial{"dp_shard=2"};
  const auto all = train(trial, "full").recomputed, rest = train(trial, "selective").recomputed;
  EXPECT_EQ(all.at("linear"), 2 * 4);
  const auto no_map = train(trial, "selective", "linear").recomputed;
  EXPECT_EQ(rest.at("linear"), 2 * 2);
  EXPECT_FALSE(no_map.contains("linear"));
  EXPECT_EQ(all.at("mesh::attention"), 2);
  EXPECT_FALSE(rest.contains("mesh::attention"));
  EXPECT_EQ(all.at("mesh::rms_norm"), rest.at("mesh::rms_norm"));
  EXPECT_EQ(all.at("mesh::rms_norm"), no_map.at("mesh::rms_norm"));
}

/// Of quantised linear maps in native numerics, too.
TEST(KeptResults, AreProductsOfCodes) {
  auto job = testing::native_job();
  job.model.converters = {std::string(kFloat8Converter)};
  job.activation_checkpoint.mode = "selective";
  job.activation_checkpoint.selective_ac_option = "linear";
  TrainingRun::Options options;
  options.make_model = [&] {
    auto sizes = testing::small_llama_options();
    sizes.width = sizes.hidden = 96;
    auto model = std::make_unique<models::Llama>(sizes);
    EXPECT_FALSE(quantize_linears(job, *model).converted.empty());
    return model;
  };
  TrainingRun run(job, options);
  Recomputed recomputed;
  const ObserverScope scope(run.world().observers(), recomputed);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  EXPECT_GT(recomputed.counts["mesh::float8_codes"] + recomputed.counts["mesh::rms_norm"], 0);
  EXPECT_EQ(recomputed.counts["mesh::float8_linear"], 0);
}

TEST(KeptResults, SayWhatIsRunInAnotherOrder) {
  KeptResults results;
  {
    const KeptResults::Scope scope(results, /*gives=*/false);
    ASSERT_EQ(KeptResults::current(), &results);
    ASSERT_TRUE(results.takes("linear"));
    ASSERT_FALSE(results.takes("linear"));
    ASSERT_FALSE(results.takes("mul.Tensor"));
    results.keep("linear", std::vector<c10::IValue>{at::zeros({2})});
  }
  ASSERT_EQ(KeptResults::current(), nullptr);
  const KeptResults::Scope scope(results, /*gives=*/true);
  EXPECT_THROW(results.give("mesh::attention"), InternalError);
  EXPECT_TRUE(at::equal(results.give("linear")[0].toTensor(), at::zeros({2})));
  EXPECT_THROW(results.give("linear"), InternalError);
}

TEST(KeptResults, MustNotBeWritten) {
  KeptResults results;
  auto tensor = at::zeros({2});
  results.keep("linear", std::vector<c10::IValue>{tensor});
  tensor.add_(1);
  EXPECT_THAT(lockstep::testing::message_of<BadInput>([&] { results.give("linear"); }),
              HasSubstr("selective_ac_option \"op\" keeps what linear gave, and the model wrote over it"));
}

}  // namespace
}  // namespace lockstep::trainer
