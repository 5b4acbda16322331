// The one-rank mesh, in the float64 domain, against the same model in plain LibTorch: the reference itself is right.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "models/families/gpt2.h"
#include "models/families/mlp.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

using testing::batch_for;

constexpr int64_t kVocabulary = 29;

std::unique_ptr<models::Model> llama_without_dropout(bool tied) {
  auto options = testing::small_llama_options();
  options.tied_head = tied;
  return std::make_unique<models::Llama>(options);
}

std::unique_ptr<models::Model> small_mlp() {
  return std::make_unique<models::Mlp>(models::MlpOptions{kVocabulary, 12, 20, 2, 0});
}

std::unique_ptr<models::Model> small_gpt2() {
  return std::make_unique<models::Gpt2>(models::Gpt2Options{24, 2, 6, 36, kVocabulary, 16, 0});
}

at::Tensor plain(const std::vector<int64_t>& values, const TokenBatch& batch) {
  return at::tensor(values).view({batch.rows, batch.seq_len});
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected, const std::string& name) {
  const double scale = std::max(expected.abs().max().item<double>(), 1e-300);
  EXPECT_LT((actual - expected).abs().max().item<double>() / scale, 1e-12) << name;
}

void compare_with_plain(const std::function<std::unique_ptr<models::Model>()>& make, const char* mesh) {
  const auto job = testing::small_job();
  const auto batch = batch_for(job, 1, kVocabulary);
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.domain = Domain::kFloat64;
  options.keep_gradients = true;
  options.make_model = make;
  TrainingRun run(job, options);
  const auto model = make();
  const auto parameters = model->parameters();
  for (size_t p = 0; p < parameters.size(); ++p) parameters[p]->assign(gather(run.state()[p].value).requires_grad_());
  const auto logits = model->forward(plain(batch.tokens, batch)).view({-1, kVocabulary});
  const auto labels = plain(batch.labels, batch).view({-1});
  const auto loss = at::cross_entropy_loss(logits, labels, {}, /*reduction=*/1, kIgnoredLabel);
  loss.backward();
  const auto result = run.step(1, batch, 1e-3);
  EXPECT_NEAR(result.loss, loss.item<double>(), 1e-12 * result.loss);
  for (size_t p = 0; p < parameters.size(); ++p)
    expect_close(gather(result.gradients[p]), parameters[p]->tensor().grad(), parameters[p]->name());
}

TEST(PlainEquality, Llama) {
  compare_with_plain([] { return llama_without_dropout(false); }, "one device");
}
TEST(PlainEquality, LlamaWithATiedHead) {
  compare_with_plain([] { return llama_without_dropout(true); }, "one device");
}
TEST(PlainEquality, Mlp) { compare_with_plain(small_mlp, "one device"); }
TEST(PlainEquality, Gpt2) { compare_with_plain(small_gpt2, "one device"); }
TEST(PlainEquality, Gpt2OnAMesh) { compare_with_plain(small_gpt2, "dp_shard=2,tp=2"); }
TEST(PlainEquality, Gpt2OnFourAxes) { compare_with_plain(small_gpt2, "dp_replicate=2,dp_shard=2,cp=2,tp=3"); }
TEST(PlainEquality, LlamaOnAMesh) {
  compare_with_plain([] { return llama_without_dropout(false); }, "dp_shard=2,tp=3");
}
TEST(PlainEquality, TiedHeadOnAMesh) {
  compare_with_plain([] { return llama_without_dropout(true); }, "dp_shard=2,tp=2");
}
TEST(PlainEquality, MlpOnAMesh) { compare_with_plain(small_mlp, "dp_replicate=2,tp=3"); }
TEST(PlainEquality, LlamaOnFourAxes) {
  compare_with_plain([] { return llama_without_dropout(false); }, "dp_replicate=2,dp_shard=2,cp=2,tp=3");
}
TEST(PlainEquality, MlpOnASequenceInThree) { compare_with_plain(small_mlp, "dp_shard=2,cp=3"); }

/// bf16 computation: parameters, gradients and reductions stay fp32; every mesh gives the bits of one device, and one
/// device stays as close to fp32 as so many roundings allow.
TEST(MixedPrecision, ComputesInBfloat16AndReducesInFloat32) {
  auto job = testing::small_job();
  job.numerics.mode = "canonical";
  const auto train = [&](const char* mesh) {
    TrainingRun::Options options;
    options.mesh = parse_mesh(mesh);
    options.keep_gradients = true;
    options.make_model = [] { return llama_without_dropout(false); };
    TrainingRun run(job, options);
    auto result = run.step(1, batch_for(job, 1, kVocabulary), 1e-3);
    for (auto& gradient : result.gradients) gradient = gather(gradient);
    return result;
  };
  const auto single = train("one device");
  job.training.mixed_precision_param = "bfloat16";
  const auto half = train("one device");
  // On the way of a value: 1 for its parameter, 15 in each of 2 blocks (norm 2, qkv, rotation, attention 2, out, sum,
  // norm 2, gate and up, swiglu 2, down, sum), 3 in the head; and back again. Each is off by 2^-9 at most.
  constexpr double kRounding = 0x1p-9, kForward = 1 + 2 * 15 + 3;
  EXPECT_NE(half.loss, single.loss);
  EXPECT_NEAR(half.loss, single.loss, kForward * kRounding * single.loss);
  EXPECT_NEAR(half.gradient_norm, single.gradient_norm, 2 * kForward * kRounding * single.gradient_norm);
  for (const char* mesh : {"dp_shard=2", "tp=2", "dp_shard=2,tp=3"}) {
    const auto on_mesh = train(mesh);
    EXPECT_EQ(on_mesh.loss, half.loss) << mesh;
    EXPECT_EQ(on_mesh.gradient_norm, half.gradient_norm) << mesh;
    for (size_t p = 0; p < half.gradients.size(); ++p) {
      EXPECT_EQ(on_mesh.gradients[p].scalar_type(), c10::kFloat);
      EXPECT_TRUE(at::equal(on_mesh.gradients[p], half.gradients[p])) << mesh << ", parameter " << p;
    }
  }
}

}  // namespace
}  // namespace lockstep::trainer
