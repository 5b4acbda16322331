// Parameters that compute in float32 beside bfloat16 ones: what their modules give, which ops run so, and one device's
// bits on every mesh.
#include "trainer/state/float32_parameters.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "models/families/mlp.h"
#include "models/families/moe.h"
#include "runtime/context/observer.h"
#include "runtime/context/world.h"
#include "tests/support/canonical_models.h"
#include "tests/support/message_of.h"
#include "tests/trainer/stages/two_steps.h"
#include "trainer/generate/generate.h"
#include "trainer/step/model_registry.h"

namespace lockstep::trainer {
namespace {

using testing::two_steps;
using ModelMaker = std::function<std::unique_ptr<models::Model>()>;
using Patterns = std::vector<std::string>;

Job job_with(const Patterns& patterns) {
  auto job = testing::small_job();
  job.training.mixed_precision_param = "bfloat16";
  job.training.mixed_precision_float32 = patterns;
  return job;
}

std::unique_ptr<models::Model> tied_llama() {
  auto options = testing::small_llama_options();
  options.tied_head = true;
  return std::make_unique<models::Llama>(options);
}
std::unique_ptr<models::Model> gpt2() { return std::make_unique<models::Gpt2>(testing::small_gpt2_options()); }
std::unique_ptr<models::Model> mlp() { return std::make_unique<models::Mlp>(models::MlpOptions{29, 24, 36, 2, 0.1}); }
std::unique_ptr<models::Model> llama_of_normed_heads() {
  auto options = testing::small_llama_options();
  options.query_key_norm = true;
  return std::make_unique<models::Llama>(options);
}
std::unique_ptr<models::Model> latent_moe() {
  auto options = models::moe_flavor("debugmodel-deepseek-v3");
  options.dense.width = 32, options.dense.layers = 2, options.dense.heads = options.dense.key_value_heads = 4;
  options.dense.hidden = 48, options.dense.vocabulary = 29, options.dense.length = 12, options.experts.hidden = 40;
  return std::make_unique<models::Moe>(options);
}
std::unique_ptr<models::Model> moe() {
  auto options = models::moe_flavor("debugmodel");
  options.dense.width = 32, options.dense.layers = 2, options.dense.heads = 4, options.dense.key_value_heads = 2;
  options.dense.hidden = 48, options.dense.vocabulary = 29, options.dense.length = 12;
  options.experts.hidden = 40, options.experts.count = 4;
  return std::make_unique<models::Moe>(options);
}

const std::vector<std::tuple<const char*, ModelMaker, std::vector<Patterns>>> kModels = {
    {"llama", testing::small_llama, {{"*"}, {"*norm.weight"}, {"output.weight"}, {"layers.0.*", "tok_embeddings.*"}}},
    {"tied llama", tied_llama, {{"tok_embeddings.weight"}}},
    {"gpt2", gpt2, {{"*"}, {"*.bias"}, {"tok_embeddings.weight"}}},
    {"mlp", mlp, {{"*.weight"}, {"output.*"}}},
    {"llama with norms of heads", llama_of_normed_heads, {{"*.q_norm.weight"}, {"*.w2.weight"}}},
    {"moe", moe, {{"*"}, {"*.router.gate.weight"}, {"*.experts.*"}}},
    {"latent moe", latent_moe, {{"*.kv_norm.weight", "*.wkv_b.weight", "*.shared_experts.*"}}}};

TEST(Float32Parameters, HaveOneDevicesBits) {
  for (const auto& [name, make, all] : kModels) {
    const auto rounded = two_steps(job_with({}), "one device", make);
    EXPECT_EQ(two_steps(job_with({}), "pp=2,dp_shard=2", make), rounded) << name;
    for (const auto& patterns : all) {
      const auto job = job_with(patterns);
      const auto expected = two_steps(job, "one device", make);
      EXPECT_NE(expected, rounded) << name << ": nothing computes in float32 by " << patterns[0];
      for (const char* mesh : {"dp_shard=2,tp=2", "dp_replicate=2,dp_shard=3", "cp=2,tp=3", "pp=2,dp_shard=2"})
        for (const char* recomputed : {"none", "full"}) {
          auto other = job;
          other.activation_checkpoint.mode = recomputed;
          EXPECT_EQ(two_steps(other, mesh, make), expected) << name << ", " << patterns[0] << ", " << mesh;
        }
      auto divided = job;
      divided.model.name = "moe";
      if (std::string_view(name).ends_with("moe"))
        EXPECT_EQ(two_steps(divided, "dp_shard=2,tp=2,ep=2,etp=2", make), expected) << name << ", " << patterns[0];
    }
  }
}

/// Models whose sums over features meshes cut, in bfloat16; of the second some levels of sums are rounded, too.
const testing::CanonicalModel kCut[] = {testing::kCanonicalModels[4], testing::kCanonicalModels[5]};

Job job_of_cut_sums(const testing::CanonicalModel& model, const Patterns& patterns) {
  auto job = testing::canonical_job(model, 4, 2);
  job.training.mixed_precision_float32 = patterns;
  return job;
}

TEST(Float32Parameters, OfSumsThatAreCutHaveOneDevicesBits) {
  for (const auto& model : kCut)
    for (const Patterns& patterns : {Patterns{"*"}, {"*.wo.weight", "*.w2.weight"}, {"*.qkv.weight", "*norm.weight"}}) {
      const auto job = job_of_cut_sums(model, patterns);
      const auto make = [&] { return testing::make_canonical_model(model); };
      const auto expected = two_steps(job, "one device", make);
      for (const char* mesh : {"tp=2", "dp_shard=2,tp=2", "pp=2,tp=4", "cp=2,tp=2"})
        EXPECT_EQ(two_steps(job, mesh, make), expected) << model.name << ", " << patterns[0] << ", " << mesh;
    }
}

/// What takes two matrices, by module: the types of its operands and of its result.
class Types final : public Observer {
 public:
  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    if (event.id.op != "linear" || event.id.phase != Phase::kForward) return;
    const auto type = [](const c10::IValue& value) { return c10::toString(value.toTensor().scalar_type()); };
    found.insert(fmt::format("{}: {} {} -> {}", event.id.module, type(event.arguments[0]), type(event.arguments[1]),
                             type(results[0])));
  }
  std::set<std::string> found;
};

std::set<std::string> types_of(const Patterns& patterns, const ModelMaker& make) {
  const auto job = job_with(patterns);
  TrainingRun::Options options;
  options.make_model = make;
  TrainingRun run(job, std::move(options));
  Types types;
  run.world().observers().add(&types);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  run.world().observers().remove(&types);
  return types.found;
}

TEST(Float32Parameters, AreThoseOfTheirPatternsAlone) {
  EXPECT_THAT(types_of({"layers.1.feed_forward.w2.weight", "output.weight"}, testing::small_llama),
              ::testing::ElementsAre("head.output: Float Float -> Float",  // logits stay as they are
                                     "layers.0.attention.qkv: BFloat16 BFloat16 -> BFloat16",
                                     "layers.0.attention.wo: BFloat16 BFloat16 -> BFloat16",
                                     "layers.0.feed_forward.gate_up: BFloat16 BFloat16 -> BFloat16",
                                     "layers.0.feed_forward.w2: BFloat16 BFloat16 -> BFloat16",
                                     "layers.1.attention.qkv: BFloat16 BFloat16 -> BFloat16",
                                     "layers.1.attention.wo: BFloat16 BFloat16 -> BFloat16",
                                     "layers.1.feed_forward.gate_up: BFloat16 BFloat16 -> BFloat16",
                                     "layers.1.feed_forward.w2: Float Float -> Float"));
  const auto of_moe = types_of({"*.router.gate.weight"}, moe);
  EXPECT_TRUE(of_moe.contains("layers.0.moe.router.gate: Float Float -> Float"));
  EXPECT_TRUE(of_moe.contains("layers.0.attention.wo: BFloat16 BFloat16 -> BFloat16"));
}

/// A root for layers of their own, in plain LibTorch: parameters are what is assigned.
template <class Layer>
struct Alone : models::Module {
  template <class... Arguments>
  explicit Alone(Arguments&&... arguments) : layer(*this, "layer", std::forward<Arguments>(arguments)...) {}
  void assign(const std::vector<at::Tensor>& tensors) {
    const auto all = parameters();
    ASSERT_EQ(all.size(), tensors.size());
    for (size_t p = 0; p < all.size(); ++p) {
      all[p]->assign(tensors[p]);
      if (tensors[p].scalar_type() == at::kFloat) all[p]->compute_in_float32();
    }
  }
  Layer layer;
};

void expect_same(const at::Tensor& actual, const at::Tensor& expected) {
  EXPECT_EQ(actual.scalar_type(), expected.scalar_type());
  EXPECT_TRUE(at::equal(actual, expected)) << actual << expected;
}

TEST(Float32Parameters, MakeALayerComputeInFloat32AndRoundWhatItGives) {
  at::manual_seed(3);
  const auto x = at::randn({2, 3, 8}).to(at::kBFloat16), wide = x.to(at::kFloat);
  const auto weight = at::randn({5, 8}), bias = at::randn({5}), scale = at::randn({8}), shift = at::randn({8});
  Alone<models::Linear> linear(models::Linear::Options{
      .in = 8, .out = 5, .axes = "ffn embed", .initial = models::Initial::fill(0), .bias = true});
  linear.assign({weight, bias});
  expect_same(linear.layer.unrounded(x), at::linear(wide, weight, bias));
  expect_same(linear.layer.forward(x), at::linear(wide, weight, bias).to(at::kBFloat16));
  Alone<models::RmsNorm> rms(8, 1e-5);
  rms.assign({scale});
  expect_same(rms.layer.forward(x), at::rms_norm(wide, {8}, scale, 1e-5).to(at::kBFloat16));
  Alone<models::LayerNorm> norm(8, 1e-5);
  norm.assign({scale, shift});
  expect_same(norm.layer.forward(x), at::layer_norm(wide, {8}, scale, shift, 1e-5).to(at::kBFloat16));
}

/// A map whose bias alone is named computes as a whole.
TEST(Float32Parameters, AreAllOfTheirModule) {
  const auto model = gpt2();
  keep_in_float32(*model, job_with({"layers.0.feed_forward.w1.bias"}));
  std::vector<std::string> names;
  for (const auto* parameter : model->parameters())
    if (parameter->computed_in_float32()) names.push_back(parameter->name());
  EXPECT_THAT(names, ::testing::ElementsAre("layers.0.feed_forward.w1.weight", "layers.0.feed_forward.w1.bias"));
}

/// Sums that are not finished stay so when they are rounded: they travel in float32 as they do anyway, but never whole.
TEST(Float32Parameters, SendWhatBfloat16Sends) {
  const auto bytes = [](const Patterns& patterns) {
    const auto job = job_of_cut_sums(kCut[0], patterns);
    TrainingRun run(job, testing::canonical_options("tp=2", kCut[0]));
    run.step(1, testing::batch_for(job, 1), 1e-2);
    return run.world().traffic().bytes();
  };
  const auto rounded = bytes({});
  for (const char* pattern : {"layers.*.wo.weight", "layers.*.w2.weight", "layers.*.qkv.weight"})
    EXPECT_EQ(bytes({pattern}), rounded) << pattern;
}

/// Of a model that does not give back what it takes.
struct Promoting final : models::Model {
  struct Block final : models::Module {
    Block(models::Module& owner, std::string name) : Module(owner, std::move(name)) {}
    models::Parameter scale{*this, "scale", {24}, "embed", models::Initial::fill(1)};
  };
  Promoting() : table(*this, "table", 29, 24, models::Initial::fill(0.5)), block(*this, "block"), head(*this, "head") {}
  at::Tensor forward(const at::Tensor& tokens) override {
    const auto x = models::run_block(table, tokens, [this](const at::Tensor& in) { return table.forward(in); });
    const auto y = models::run_block(block, x, [this](const at::Tensor& in) { return in * block.scale; });
    return models::run_block(head, y, [this](const at::Tensor& in) { return in * head.scale; });
  }
  int64_t vocabulary() const override { return 24; }
  std::vector<Module*> blocks() override { return {&table, &block, &head}; }
  models::Embedding table;
  Block block, head;
};

TEST(Float32Parameters, OfABlockThatWidensWhatItHandsOnAreRefused) {
  EXPECT_EQ(
      testing::message_of<BadInput>([] { types_of({"block.scale"}, [] { return std::make_unique<Promoting>(); }); }),
      "training.mixed_precision_float32: block block hands on Float, not the model's BFloat16: its modules do not "
      "give back the type that they take (models::given_as). Choose patterns of other parameters.");
}

/// Norms still compute as they were trained to.
TEST(Float32Parameters, OfMapsRoundedForGenerationAreLeftOut) {
  auto job = job_with({"layers.0.*"});
  job.model.layers = 2;
  const auto model = make_int8_model(job);
  keep_in_float32(*model, job);
  std::vector<std::string> names;
  for (const auto* parameter : model->parameters())
    if (parameter->computed_in_float32()) names.push_back(parameter->name());
  EXPECT_THAT(names, ::testing::ElementsAre("layers.0.attention_norm.weight", "layers.0.ffn_norm.weight"));
}

std::string problem(const Job& job, const ModelMaker& make = testing::small_llama) {
  return testing::message_of<BadInput>([&] {
    const auto model = make();
    keep_in_float32(*model, job);
  });
}

TEST(Float32Parameters, SayWhichPatternDoesNotFit) {
  EXPECT_EQ(
      problem(job_with({"*norm.weight", "norms.weight"})),
      "training.mixed_precision_float32: \"norms.weight\" fits no parameter. Did you mean norm.weight? The model's "
      "15 are tok_embeddings.weight, norm.weight, output.weight, layers.0.attention_norm.weight, ....");
  EXPECT_EQ(problem(job_with({"*.wq.weight"})),
            "training.mixed_precision_float32: \"*.wq.weight\" fits layers.0.attention.wq.weight, which is computed as "
            "one parameter with layers.0.attention.wk.weight, layers.0.attention.wv.weight, "
            "layers.0.attention.qkv.weight. Choose a pattern that fits all of them.");
  auto lora = job_with({"*"});
  lora.lora.rank = 2;
  EXPECT_EQ(problem(lora),
            "training.mixed_precision_float32 and lora.rank 2: changes of low rank compute in the type of what they "
            "change; leave one out.");
  auto float8 = job_with({"*norm.weight", "layers.1.*"});
  float8.model.converters = {std::string(kFloat8Converter)};
  float8.model.layers = 2;
  EXPECT_EQ(
      problem(float8, [&] { return make_model(float8); }),
      "training.mixed_precision_float32: \"layers.1.*\" fits layers.1.attention.qkv, whose factors are "
      "quantised. Name it in filter_fqns of what quantises it (model.converters), too, or choose another pattern.");
  auto wide = job_with({"*"});
  wide.training.mixed_precision_param = "float32";
  EXPECT_EQ(problem(wide),
            "training.mixed_precision_float32 is about parameters beside those that compute in 16 bits; "
            "training.mixed_precision_param is \"float32\". Leave it out or choose bfloat16.");
  EXPECT_THAT(problem(job_with({"*.expert_bias"}), latent_moe),
              ::testing::AllOf(::testing::HasSubstr("\"*.expert_bias\" fits no parameter."),
                               ::testing::Not(::testing::HasSubstr("Did you mean"))))
      << "a buffer is float32 anyway";
}

}  // namespace
}  // namespace lockstep::trainer
