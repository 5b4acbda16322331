// Quantised linear maps in training: one device's bits on every mesh, and faults of scales and rounding that are seen.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tests/support/small_models.h"
#include "trainer/step/model_registry.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kVocabulary = 512;

/// A name, what it sets in a job.
struct Settings {
  const char* name;
  void (*set)(Job&);
};

void set_float8(Job& job, const char* recipe) {
  job.model.converters = {std::string(kFloat8Converter)};
  job.float8.recipe_name = recipe;
}
void set_mx(Job& job, const char* recipe) {
  job.model.converters = {std::string(kMxConverter)};
  job.mx.recipe_name = recipe;
}

constexpr Settings kSettings[] = {
    {"tensorwise", [](Job& job) { set_float8(job, "tensorwise"); }},
    {"rowwise", [](Job& job) { set_float8(job, "rowwise"); }},
    {"rowwise_with_gw_hp", [](Job& job) { set_float8(job, "rowwise_with_gw_hp"); }},
    {"gathered_in_float8",
     [](Job& job) { set_float8(job, "tensorwise"), job.float8.enable_fsdp_float8_all_gather = true; }},
    {"tensorwise_in_bfloat16",
     [](Job& job) { set_float8(job, "tensorwise"), job.training.mixed_precision_param = "bfloat16"; }},
    {"gathered_in_float8_beside_bfloat16",
     [](Job& job) {
       set_float8(job, "tensorwise"), job.float8.enable_fsdp_float8_all_gather = true;
       job.training.mixed_precision_param = "bfloat16";
     }},
    {"mxfp8", [](Job& job) { set_mx(job, "mxfp8_cublas"); }},
    {"mxfp4", [](Job& job) { set_mx(job, "mxfp4_emulated"); }},
    {"mxfp4_rotated", [](Job& job) { set_mx(job, "mxfp4_emulated"), job.quantize.rotated_block = 32; }},
};

Job job_of(const Settings& settings) {
  auto job = testing::small_job();
  job.training.seq_len = 64;
  job.training.global_batch_size = 12;
  job.training.local_batch_size = 2;
  job.activation_checkpoint.mode = "full";
  settings.set(job);
  return job;
}

TrainingRun::Options options_on(const char* mesh, const Job& job, std::shared_ptr<const RuleSet> rules = nullptr) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.rules = std::move(rules);
  options.make_model = [job] {
    models::LlamaOptions sizes;
    sizes.width = 128, sizes.layers = 1, sizes.heads = 4, sizes.key_value_heads = 2, sizes.hidden = 256;
    sizes.vocabulary = kVocabulary, sizes.length = 64, sizes.cut_between_leaves = true;
    auto model = std::make_unique<models::Llama>(sizes);
    EXPECT_FALSE(quantize_linears(job, *model).converted.empty());
    return model;
  };
  return options;
}

StepCheck check(StepVerifier& verifier, const Job& job, int64_t step) {
  return verifier.check(step, testing::batch_for(job, step, kVocabulary), 1e-2);
}

class QuantizedBits : public ::testing::TestWithParam<std::tuple<Settings, const char*>> {};

TEST_P(QuantizedBits, AreOneDevices) {
  const auto& [settings, mesh] = GetParam();
  const auto job = job_of(settings);
  StepVerifier verifier(job, options_on(mesh, job));
  for (int64_t step = 1; step <= 2; ++step) {
    const auto found = check(verifier, job, step);
    ASSERT_TRUE(found.comparison.agrees() && found.comparison.differing_bits == 0)
        << "step " << step << ": " << found.comparison.beyond[0].text() << "\n"
        << (found.blame ? found.blame->text() : "");
  }
}

std::string case_name(const ::testing::TestParamInfo<QuantizedBits::ParamType>& info) {
  std::string name = std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param);
  for (auto& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Recipes, QuantizedBits,
                         ::testing::Combine(::testing::ValuesIn(kSettings),
                                            ::testing::Values("dp_shard=3", "dp_replicate=2,dp_shard=2", "tp=2", "tp=3",
                                                              "cp=2", "dp_shard=2,cp=2,tp=2", "pp=2,dp_shard=2")),
                         case_name);

// Faults.

/// The rules with one op's shards computed in another way.
std::shared_ptr<const RuleSet> with_local(const char* op, LocalFunction local) {
  const auto rules = built_in_rules(Numerics::kCanonical);
  Rule rule = *rules->find(op);
  rule.local = local;
  return rules->with(rule);
}

void scale_of_the_shard(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "x");
  if (x.numel() > 0) call.set_argument(stack, "maximum", x.abs().amax().to(at::kFloat));
  call.op.callBoxed(stack);
}

void maximum_of_half(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "self");
  const int64_t dim = call.argument(stack, "dim").toIntVector()[0], half = (x.size(dim) + 1) / 2;
  if (x.numel() > 0) call.set_argument(stack, "self", x.narrow(dim, 0, half));
  call.op.callBoxed(stack);
}

/// Towards zero: bits that an E4M3 number lacks are dropped before.
void truncated(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "x");
  const auto bits = x.contiguous().view(at::kInt).bitwise_and(-(1 << 20));
  call.set_argument(stack, "x", bits.view(at::kFloat));
  call.op.callBoxed(stack);
}

void shorter_blocks(const LocalCall& call, torch::jit::Stack& stack) {
  const auto x = call.tensor(stack, "x");
  auto sizes = x.sizes().vec();
  if (sizes.back() % 16 != 0 || x.numel() == 0) return call.op.callBoxed(stack);
  sizes.back() /= 16;
  sizes.push_back(16);
  call.set_argument(stack, "x", x.reshape(sizes));
  call.set_argument(stack, "dim", int64_t{-1});
  call.op.callBoxed(stack);
  stack = {stack.back().toTensor().reshape(x.sizes())};
}

struct Fault {
  const char* name;
  Settings settings;
  const char* mesh;
  const char* op;
  LocalFunction local;
};

class QuantizationFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(QuantizationFaults, AreSeen) {
  const auto& fault = GetParam();
  const auto job = job_of(fault.settings);
  StepVerifier verifier(job, options_on(fault.mesh, job, with_local(fault.op, fault.local)));
  const auto found = check(verifier, job, 1);
  EXPECT_FALSE(found.agrees());
  ASSERT_TRUE(found.blame);
  EXPECT_THAT(found.blame->text(), ::testing::HasSubstr(fault.op));
}

constexpr Fault kFaults[] = {
    {"scale_of_the_shard", kSettings[0], "tp=2", "mesh::quantize", scale_of_the_shard},
    {"scale_of_the_shard_of_positions", kSettings[1], "cp=2", "mesh::quantize", scale_of_the_shard},
    {"maximum_of_half_a_row", kSettings[1], "dp_shard=2", "amax", maximum_of_half},
    {"truncated", kSettings[1], "dp_shard=2", "mesh::quantize", truncated},
    {"codes_of_the_shards_scale", kSettings[3], "dp_shard=2", "mesh::float8_codes", scale_of_the_shard},
    {"blocks_of_sixteen", kSettings[6], "tp=2", "mesh::quantize_blocks", shorter_blocks},
};
INSTANTIATE_TEST_SUITE_P(Planted, QuantizationFaults, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep::trainer
