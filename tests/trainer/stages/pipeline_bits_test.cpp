// Pipelines: the bits of one device on every mesh, with every schedule that training carries out.
// LOCKSTEP_BITWISE_SEED repeats a drawn run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "core/error.h"
#include "models/families/gpt2.h"
#include "models/families/mlp.h"
#include "runtime/context/world.h"
#include "tests/support/message_of.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/stages/two_steps.h"
#include "trainer/stages/pipeline_plan.h"
#include "trainer/step/model_registry.h"

namespace lockstep::trainer {
namespace {

using testing::two_steps;
using ModelMaker = std::function<std::unique_ptr<models::Model>()>;

std::unique_ptr<models::Model> llama(bool tied) {
  auto options = testing::small_llama_options();
  options.layers = 4;
  options.dropout = 0.1;
  options.tied_head = tied;
  return std::make_unique<models::Llama>(options);
}

std::unique_ptr<models::Model> gpt2() {
  auto options = testing::small_gpt2_options();
  options.layers = 4;
  return std::make_unique<models::Gpt2>(options);
}

std::unique_ptr<models::Model> mlp() { return std::make_unique<models::Mlp>(models::MlpOptions{29, 24, 36, 4, 0.1}); }

const std::vector<std::pair<const char*, ModelMaker>> kModels = {
    {"llama", [] { return llama(false); }}, {"llama, tied", [] { return llama(true); }}, {"gpt2", gpt2}, {"mlp", mlp}};

Job job_of(int64_t batch, int64_t microbatch, const std::string& schedule = "1F1B") {
  auto job = testing::small_job();
  job.training.global_batch_size = batch;
  job.training.local_batch_size = batch;
  job.parallelism.pipeline_parallel_microbatch_size = microbatch;
  job.parallelism.pipeline_parallel_schedule = schedule;
  return job;
}

constexpr const char* kSchedules[] = {"GPipe",         "1F1B",     "Interleaved1F1B", "ZBH1", "InterleavedZeroBubble",
                                      "ZBVZeroBubble", "DualPipeV"};

/// One of those that this size may have.
std::string drawn_schedule(std::mt19937_64& random, int64_t pp, int64_t microbatches) {
  std::vector<std::string> fitting{"GPipe", "1F1B", "ZBH1"};
  if (pp <= 3) fitting.emplace_back("ZBVZeroBubble");  // six blocks, two stages on each rank
  if (pp <= 3 && microbatches >= 2 * pp) fitting.emplace_back("DualPipeV");
  if (pp <= 3 && microbatches % pp == 0)
    for (const char* interleaved : {"Interleaved1F1B", "InterleavedZeroBubble"}) fitting.emplace_back(interleaved);
  return fitting[random() % fitting.size()];
}

TEST(PipelineBits, EverySchedule) {
  for (const auto& [name, make_model] : kModels) {
    const auto expected = two_steps(job_of(8, 8), "one device", make_model);
    for (const char* schedule : kSchedules)
      EXPECT_EQ(two_steps(job_of(8, 1, schedule), "pp=2", make_model), expected) << name << ", " << schedule;
  }
}

/// Stages that have nothing to train, first or last; blocks that are recomputed though what they are given asks for no
/// gradient.
TEST(PipelineBits, FrozenStages) {
  for (const char* target : {"layers.3.*", "layers.0.*", "layers.*"}) {
    auto job = job_of(4, 1);
    job.lora.rank = 2;
    job.lora.targets = {target};
    const auto make_model = kModels[1].second;
    const auto expected = two_steps(job, "one device", make_model);
    for (const char* recompute : {"none", "full"}) {
      job.activation_checkpoint.mode = recompute;
      for (const char* mesh : {"one device", "pp=2", "pp=3", "pp=6", "pp=2,tp=2"})
        for (const char* schedule : {"1F1B", "ZBH1"}) {
          job.parallelism.pipeline_parallel_schedule = schedule;
          EXPECT_EQ(two_steps(job, mesh, make_model), expected) << target << " " << recompute << " " << mesh;
        }
    }
  }
}

using Parts = std::vector<std::vector<std::string>>;

Job job_in_parts(const Parts& parts) {
  auto job = job_of(8, 1);
  job.parallelism.module_fqns_per_model_part = parts;
  return job;
}

TEST(PipelineBits, StagesThatTheJobNames) {
  const auto& [name, make_model] = kModels[0];
  const auto model = make_model();
  const auto expected = two_steps(job_of(8, 8), "one device", make_model);
  const Parts uneven{{"tok_embeddings"}, {"layers.0", "layers.1", "layers.2", "layers.3", "norm", "output"}};
  const Parts four{{"tok_embeddings", "layers.0"}, {"layers.1"}, {"layers.2", "layers.3"}, {"head"}};
  EXPECT_EQ(plan_pipeline(job_in_parts(uneven), *model, 2, 8).first_blocks, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(two_steps(job_in_parts(uneven), "pp=2", make_model), expected);
  EXPECT_EQ(plan_pipeline(job_in_parts(four), *model, 4, 8).first_blocks, (std::vector<int64_t>{0, 2, 3, 5}));
  EXPECT_EQ(two_steps(job_in_parts(four), "pp=4", make_model), expected);
  auto looped = job_in_parts(four);
  looped.parallelism.pipeline_parallel_schedule = "Interleaved1F1B";
  EXPECT_EQ(two_steps(looped, "pp=2", make_model), expected) << "two stages on each rank";
  EXPECT_EQ(two_steps(looped, "one device", make_model), expected) << "no stages, no parts";
}

TEST(PipelineBits, PartsThatAreNoStagesAreRefused) {
  const auto problem = [](const Parts& parts, const std::function<void(Job&)>& change, int64_t microbatches = 8) {
    const auto model = kModels[0].second();
    auto job = job_in_parts(parts);
    change(job);
    return testing::message_of<BadInput>([&] { plan_pipeline(job, *model, 2, microbatches); });
  };
  const auto as_it_is = [](Job&) {};
  const std::string key = "parallelism.module_fqns_per_model_part";
  EXPECT_EQ(problem({{"tok_embeddings", "layers.0", "layers.1", "layers.2", "layers.3", "norm"}, {"output"}}, as_it_is),
            key + ": norm and output are of one block of the model; name them in one stage.");
  EXPECT_EQ(
      problem({{"tok_embeddings"}, {"layers.1"}}, as_it_is),
      key +
          ": stage 1: layers.1 stands where layers.0 was expected: stages hold the model's blocks in their order, "
          "each once.");
  EXPECT_EQ(problem({{"tok_embeddings"}, {"layers.0", "layers.1"}, {"layers.2", "layers.3", "head"}}, as_it_is),
            key + " has 3 stages, no multiple of the 2 ranks of mesh axis pp.");
  const Parts four{{"tok_embeddings"}, {"layers.0"}, {"layers.1"}, {"layers.2", "layers.3", "head"}};
  EXPECT_EQ(problem(four, [](Job& job) { job.parallelism.pipeline_parallel_layers_per_stage = 2; }),
            key + " names the blocks of each stage; leave pipeline_parallel_layers_per_stage out.");
  EXPECT_THAT(problem(four, as_it_is), ::testing::HasSubstr("1F1B")) << "which has one stage on each rank";
  const TemporaryFolder folder;
  std::ofstream(folder.file("two.csv")) << "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n";
  EXPECT_EQ(problem(
                four, [&](Job& job) { job.parallelism.pipeline_parallel_schedule_csv = folder.file("two.csv"); }, 2),
            key + " has 4 stages, and " + folder.file("two.csv") + " has 2.");
}

TEST(PipelineBits, MeshesAndMicrobatches) {
  const char* from = std::getenv("LOCKSTEP_BITWISE_SEED");
  const auto seed = from ? std::stoull(from) : std::random_device{}();
  std::mt19937_64 random(seed);
  const auto one_of = [&](std::vector<int64_t> values) { return values[random() % values.size()]; };
  for (int run = 0; run < 24; ++run) {
    const auto& [name, make_model] = kModels[random() % kModels.size()];
    const int64_t pp = one_of({2, 2, 3, 4, 5, 6}), replicas = one_of({1, 1, 2}), shards = one_of({1, 1, 2, 3});
    const int64_t cp = one_of({1, 1, 2}), tp = one_of({1, 1, 2, 3});
    const int64_t microbatch = one_of({1, 2, 4}), microbatches = one_of({1, 2, 3, 4, 5, 8});
    const int64_t batch = replicas * shards * microbatch * microbatches;
    const auto schedule = drawn_schedule(random, pp, microbatches);
    auto job = job_of(batch, microbatch, schedule);
    job.activation_checkpoint.mode = one_of({0, 1}) ? "full" : "none";
    job.parallelism.context_parallel_rotate_method = one_of({0, 1}) ? "allgather" : kUlysses;
    const auto mesh = fmt::format("pp={},dp_replicate={},dp_shard={},cp={},tp={}", pp, replicas, shards, cp, tp);
    ASSERT_EQ(two_steps(job, mesh, make_model), two_steps(job_of(batch, batch), "one device", make_model))
        << name << ", " << mesh << ", " << schedule << ", " << microbatches << " microbatches of " << microbatch
        << "\nagain: LOCKSTEP_BITWISE_SEED=" << seed;
  }
}

/// Linear maps of factors of few bits.
std::unique_ptr<models::Model> quantized_llama(const Job& job) {
  auto options = testing::small_llama_options();
  options.width = 64, options.heads = 4, options.key_value_heads = 2, options.hidden = 64, options.layers = 4;
  auto model = std::make_unique<models::Llama>(options);
  EXPECT_FALSE(quantize_linears(job, *model).converted.empty());
  return model;
}

/// Factors of few bits, sums that round, three ranks whose nodes wait: with backwards in two parts, too.
TEST(PipelineBits, InTwoPartsWhateverIsComputed) {
  auto float8 = job_of(8, 1, "ZBH1"), rounded = float8, nodes = job_of(12, 1, "ZBH1");
  float8.model.converters = {std::string(kFloat8Converter)};
  float8.float8.recipe_name = "rowwise";
  rounded.training.mixed_precision_param = "bfloat16";
  rounded.numerics.rounded_levels = 1;
  const ModelMaker plain = kModels[0].second, quantized = [float8] { return quantized_llama(float8); };
  const auto in_one_part = [](Job job) {
    job.parallelism.pipeline_parallel_microbatch_size = job.training.local_batch_size;
    return job;
  };
  for (const auto& [job, mesh, make_model] :
       {std::tuple{float8, "pp=2", quantized}, {rounded, "pp=2,tp=2", plain}, {nodes, "pp=2,dp_shard=3", plain}})
    EXPECT_EQ(two_steps(job, mesh, make_model), two_steps(in_one_part(job), "one device", make_model)) << mesh;
}

/// Native numerics: what 1F1B gives, but for rounding; in two parts products are the same, sums may be added elsewhere.
TEST(PipelineBits, NativeInTwoPartsAgreesButForRounding) {
  const auto norm = [](const char* schedule) {
    auto job = job_of(8, 1, schedule);
    job.numerics.mode = "native";
    TrainingRun::Options options;
    options.mesh = parse_mesh("pp=2,dp_shard=2");
    options.make_model = kModels[1].second;
    TrainingRun run(job, std::move(options));
    run.step(1, testing::batch_for(job, 1), 1e-2);
    return run.step(2, testing::batch_for(job, 2), 1e-2).gradient_norm;
  };
  EXPECT_NEAR(norm("ZBVZeroBubble"), norm("Interleaved1F1B"), 1e-5);
  EXPECT_NEAR(norm("ZBH1"), norm("1F1B"), 1e-5);
}

/// Each of m microbatches of b samples of n tokens crosses each of s - 1 borders twice, w floats for each token, of
/// which a rank has its share.
TEST(PipelineTraffic, IsItsClosedForm) {
  struct Case {
    const char *mesh, *schedule;
    int64_t stages, share;
  };
  for (const auto& [mesh, schedule, stages, share] :
       {Case{"pp=2", "1F1B", 2, 1}, Case{"pp=4", "GPipe", 4, 1}, Case{"pp=3", "Interleaved1F1B", 6, 1},
        Case{"pp=2,tp=2", "1F1B", 2, 2}, Case{"pp=2,dp_shard=2,cp=3", "1F1B", 2, 3}}) {
    auto job = job_of(12, 2, schedule);
    job.numerics.mode = "native";
    TrainingRun::Options options;
    options.mesh = parse_mesh(mesh);
    options.make_model = [] { return llama(false); };
    TrainingRun run(job, options);
    const int64_t microbatches = run.batching().accumulation_steps;
    run.world().traffic().clear();
    run.step(1, testing::batch_for(job, 1), 1e-2);
    const auto sent = run.world().traffic().on("pp", CollectiveKind::kTransfer);
    EXPECT_EQ(sent.count, 2 * (stages - 1) * microbatches) << mesh;
    const int64_t bytes = sent.count * 2 * 12 * 24 * 4 / share;
    EXPECT_EQ(sent.bytes, static_cast<double>(bytes)) << mesh;
  }
}

}  // namespace
}  // namespace lockstep::trainer
