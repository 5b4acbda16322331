// A step of a model with experts beside plain LibTorch's autograd: the loss that balances sequences comes along with
// the weight that docs/experts.md says, which no comparison of two runs can see.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "models/families/moe.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/small_models.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kVocabulary = 29, kLength = 12;

std::unique_ptr<models::Model> small_experts() {
  auto options = models::moe_flavor("debugmodel-deepseek-v3");
  options.dense.width = 24, options.dense.layers = 3, options.dense.heads = options.dense.key_value_heads = 3;
  options.dense.hidden = 36, options.dense.vocabulary = kVocabulary, options.dense.length = kLength;
  options.experts.hidden = 12, options.latent = {8, 8, 4, 2, 4}, options.experts.auxiliary_loss = 3;
  return std::make_unique<models::Moe>(options);
}

/// Plain code, but that losses are kept.
class KeptLosses final : public models::Hooks {
 public:
  at::Tensor annotate(const at::Tensor& tensor, std::string_view) override { return tensor; }
  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    const Attention& attention) override {
    return attention.run(query, key, value);
  }
  at::Tensor use(const models::Parameter& parameter) override { return parameter.tensor(); }
  at::Tensor constant(const at::Tensor& table) override { return table; }
  void balance(const models::Parameter&, const at::Tensor&, double) override {}
  at::Tensor with_loss(const at::Tensor& x, const at::Tensor& losses) override {
    kept.push_back(losses);
    return x;
  }
  at::Tensor run_block(models::Module&, const std::function<at::Tensor(const at::Tensor&)>& forward,
                       const at::Tensor& input) override {
    return forward(input);
  }

  std::vector<at::Tensor> kept;
};

at::Tensor plain(const std::vector<int64_t>& values, const TokenBatch& batch) {
  return at::tensor(values).view({batch.rows, batch.seq_len});
}

void expect_plain_step(const char* mesh, int64_t local_batch) {
  auto job = testing::small_job();
  job.model.name = "moe";
  job.training.local_batch_size = local_batch;
  const auto batch = testing::batch_for(job, 1, kVocabulary);
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.keep_gradients = true;
  options.make_model = small_experts;
  TrainingRun run(job, options);
  const auto model = small_experts();
  const auto parameters = model->parameters();
  for (size_t p = 0; p < parameters.size(); ++p)
    parameters[p]->assign(gather(run.state()[p].value).clone().requires_grad_(parameters[p]->trainable()));
  KeptLosses hooks;
  const models::HooksScope scope(hooks);
  const auto logits = model->forward(plain(batch.tokens, batch)).view({-1, kVocabulary});
  const auto loss =
      at::cross_entropy_loss(logits, plain(batch.labels, batch).view({-1}), {}, /*reduction=*/1, kIgnoredLabel);
  ASSERT_EQ(hooks.kept.size(), 2u) << "a layer is dense";
  (loss + at::mean(hooks.kept[0]) + at::mean(hooks.kept[1])).backward();
  const auto result = run.step(1, batch, 1e-3);
  constexpr double kRoundings = 1024 * 0x1p-24;  // of a few hundred summands, on both sides
  EXPECT_NEAR(result.loss, loss.item<double>(), kRoundings) << "without what balances";
  size_t next = 0;
  for (const auto* parameter : parameters) {
    if (!parameter->trainable()) continue;
    const auto& expected = parameter->tensor().grad();
    const auto distance = (gather(result.gradients[next++]) - expected).abs().max().item<double>();
    EXPECT_LE(distance, kRoundings * expected.abs().max().item<double>()) << parameter->name();
  }
}

TEST(ExpertPlain, OneDevicesStepIsAutogradsWithTheMeanOfSequences) { expect_plain_step("one device", 12); }
TEST(ExpertPlain, SoIsOneOfMicrobatchesOnAMesh) { expect_plain_step("dp_shard=2,tp=2,ep=4", 2); }

}  // namespace
}  // namespace lockstep::trainer
