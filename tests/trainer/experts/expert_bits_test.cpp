// Training steps of models with experts under canonical numerics: loss, gradients, parameters and the biases that
// balance experts have one device's bits on meshes that divide experts over each axis, over several, or over none.
#include <gtest/gtest.h>

#include "models/families/moe.h"
#include "tests/support/small_models.h"
#include "trainer/verify/mesh_comparison.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kVocabulary = 61, kSequence = 66;

struct ExpertMesh {
  const char* mesh;
  int64_t batch, local_batch;
};

constexpr ExpertMesh kMeshes[] = {
    {"dp_shard=2,ep=2", 4, 2},
    {"dp_shard=2,ep=2", 8, 1},
    {"dp_shard=3,ep=3", 6, 2},
    {"dp_shard=4,ep=4", 8, 1},
    {"cp=2,ep=2", 3, 3},
    {"cp=3,ep=3", 4, 1},
    {"tp=2,ep=2", 4, 2},
    {"tp=4,ep=4", 3, 1},
    {"dp_replicate=2,dp_shard=2,ep=2", 4, 1},
    {"dp_replicate=2,tp=2,ep=2", 4, 1},
    {"dp_replicate=3,cp=2,ep=2", 6, 1},
    {"dp_shard=2,cp=2,ep=2", 4, 2},
    {"dp_shard=2,cp=2,ep=4", 4, 1},
    {"dp_shard=2,tp=2,ep=2", 4, 2},
    {"dp_shard=2,tp=2,ep=4", 8, 1},
    {"dp_shard=2,tp=2,ep=2,etp=2", 4, 1},
    {"dp_shard=3,tp=2,ep=3,etp=2", 3, 1},
    {"cp=2,tp=2,ep=2", 3, 1},
    {"cp=2,tp=2,ep=4", 2, 2},
    {"cp=2,tp=2,ep=2,etp=2", 3, 1},
    {"dp_replicate=2,dp_shard=2,cp=2,tp=2,ep=8", 4, 1},
    {"dp_shard=2,cp=2,tp=2,ep=4,etp=2", 4, 1},
    {"pp=2,dp_shard=2,ep=2", 4, 1},
    {"pp=2,tp=2,ep=2", 3, 1},
    {"pp=2,dp_shard=2,cp=2,ep=4", 4, 1},
    {"pp=2,dp_shard=2,tp=2,ep=2,etp=2", 4, 1},
    {"dp_shard=2,tp=2", 4, 1},
    {"cp=2,tp=2", 3, 1},
    {"dp_shard=4,ep=2", 8, 1},
    {"dp_shard=4,ep=2", 4, 1},
    {"dp_shard=6,ep=2", 12, 2},
    {"dp_shard=6,ep=3", 6, 1},
    {"dp_replicate=2,dp_shard=4,ep=2", 8, 1},
    {"dp_shard=4,cp=2,ep=4", 8, 1},
    {"dp_shard=4,tp=2,ep=4", 4, 1},
    {"dp_shard=4,tp=2,ep=2,etp=2", 8, 1},
    {"pp=2,dp_shard=4,ep=2", 8, 1},
};

/// Which experts have tokens.
enum class Load { kAsChosen, kAllOnOne, kOneEach };

struct ExpertModel {
  const char* name;
  models::MoeOptions options;
  Load load = Load::kAsChosen;
  const char* compute = "float32";
  const char* recompute = "none";
};

models::MoeOptions small_sizes(models::MoeOptions o) {
  o.dense.width = 64, o.dense.layers = 2, o.dense.vocabulary = kVocabulary, o.dense.length = kSequence;
  o.dense.heads = 4, o.dense.key_value_heads = o.latent.enabled() ? 4 : 2, o.dense.hidden = 96;
  o.experts.hidden = 80, o.dense.cut_between_leaves = true;
  return o;
}

models::MoeOptions mixtral() {
  auto o = small_sizes(models::moe_flavor("debugmodel"));
  o.experts.count = 5;
  return o;
}

/// Biases and losses that change something within two steps.
models::MoeOptions deepseek() {
  auto o = small_sizes(models::moe_flavor("debugmodel-deepseek-v3"));
  o.latent = {24, 32, 16, 8, 16};
  o.experts.count = 8, o.experts.per_token = 3, o.experts.groups = 4, o.experts.groups_per_token = 3;
  o.experts.balance_rate = 0.05, o.experts.auxiliary_loss = 0.5;
  return o;
}

/// Each expert takes one token of a sequence at most.
models::MoeOptions one_each() {
  auto o = mixtral();
  o.experts.capacity_factor = 1e-6;
  return o;
}

const std::vector<ExpertModel>& all_models() {
  static const std::vector<ExpertModel> all{
      {"mixtral", mixtral()},
      {"deepseek", deepseek()},
      {"deepseek, everyone wants two experts, nobody one", deepseek(), Load::kAllOnOne},
      {"mixtral, an expert takes one token", one_each(), Load::kOneEach},
      {"deepseek, bfloat16, recomputed", deepseek(), Load::kAsChosen, "bfloat16", "full"},
      {"qwen3", small_sizes(models::moe_flavor("debugmodel-qwen3"))},
      {"llama4, bfloat16", small_sizes(models::moe_flavor("debugmodel-llama4")), Load::kAsChosen, "bfloat16"},
  };
  return all;
}

/// Biases far apart decide alone.
void load(models::Model& model, Load how) {
  for (auto* parameter : model.parameters())
    if (how == Load::kAllOnOne && parameter->is_buffer())
      parameter->divide({{parameter->name() + ".first", 1, models::Initial::fill(50)},
                         {parameter->name() + ".next", 2, models::Initial::fill(20)},
                         {parameter->name() + ".others", parameter->sizes()[0] - 4, models::Initial::fill(0)},
                         {parameter->name() + ".last", 1, models::Initial::fill(-50)}});
}

Job job_of(const ExpertMesh& mesh, const ExpertModel& model) {
  auto job = testing::small_job();
  job.numerics.mode = "canonical";
  job.model.name = "moe";
  job.training.seq_len = kSequence;
  job.training.global_batch_size = mesh.batch, job.training.local_batch_size = mesh.local_batch;
  job.training.mixed_precision_param = model.compute;
  job.activation_checkpoint.mode = model.recompute;
  job.parallelism.strict = true;
  return job;
}

TrainingRun::Options options_of(const char* mesh, const ExpertModel& model) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = [&model] {
    auto made = std::make_unique<models::Moe>(model.options);
    load(*made, model.load);
    return made;
  };
  return options;
}

TokenBatch batch_for(const Job& job, int64_t step) { return testing::batch_for(job, step, kVocabulary); }

void expect_one_devices_bits(const ExpertMesh& mesh, const ExpertModel& model) {
  const auto job = job_of(mesh, model);
  StepVerifier verifier(job, options_of(mesh.mesh, model));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto check = verifier.check(step, batch_for(job, step), 1e-2);
    ASSERT_TRUE(check.comparison.agrees() && check.comparison.differing_bits == 0)
        << mesh.mesh << ", batch " << mesh.batch << " by " << mesh.local_batch << ", " << model.name << ", step "
        << step << ": " << check.comparison.differing_bits << " differing bits; " << check.comparison.beyond[0].text()
        << "\n"
        << (check.blame ? check.blame->text() : "");
  }
}

class ExpertBits : public ::testing::TestWithParam<size_t> {};

/// The two flavors on every mesh, of the others one.
TEST_P(ExpertBits, EveryMeshHasOneDevicesBits) {
  const auto& mesh = kMeshes[GetParam()];
  expect_one_devices_bits(mesh, all_models()[0]);
  expect_one_devices_bits(mesh, all_models()[1]);
  expect_one_devices_bits(mesh, all_models()[2 + GetParam() % (all_models().size() - 2)]);
}

/// In float64 storage, op by op, and as a whole.
TEST(ExpertNative, AgreesWithOneDevice) {
  for (const char* mesh : {"dp_shard=2,ep=2", "cp=2,tp=2,ep=2,etp=2"}) {
    auto job = job_of({mesh, 4, 2}, all_models()[1]);
    job.numerics.mode = "native";
    MeshComparison comparison(job, options_of(mesh, all_models()[1]));
    for (int64_t step = 1; step <= 2; ++step) {
      const auto check = comparison.check(step, batch_for(job, step), 1e-2);
      ASSERT_TRUE(check.agrees()) << mesh << ", step " << step << ": " << check.difference;
      EXPECT_GT(check.comparison.values, 1000) << mesh;
    }
  }
}

std::string mesh_name(const ::testing::TestParamInfo<size_t>& info) {
  const auto& mesh = kMeshes[info.param];
  auto name = fmt::format("{}_batch_{}_by_{}", mesh.mesh, mesh.batch, mesh.local_batch);
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Meshes, ExpertBits, ::testing::Range<size_t>(0, std::size(kMeshes)), mesh_name);

}  // namespace
}  // namespace lockstep::trainer
