// What the model computes from weights that transformers saved, beside what transformers computed: a folder that
// tests/python/hugging_face_test.py makes, which runs this.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/redistribution/gather.h"
#include "trainer/step/training_run.h"
#include "trainer/weights/exchange/open_weights.h"
#include "trainer/weights/hugging_face/safetensors_folder.h"

namespace lockstep::trainer {
namespace {

/// Of each token's label, -log p.
at::Tensor losses_of(const Job& job, const char* mesh, const at::Tensor& tokens, const at::Tensor& labels) {
  TrainingRun run(job, {.mesh = parse_mesh(mesh), .keep_gradients = true});
  TokenBatch batch{tokens.size(0), tokens.size(1), {}, {}};
  const auto* token = tokens.const_data_ptr<int64_t>();
  const auto* label = labels.const_data_ptr<int64_t>();
  batch.tokens.assign(token, token + tokens.numel()), batch.labels.assign(label, label + labels.numel());
  return gather(run.step(1, batch, 0).token_losses.at(0)).clone().reshape(tokens.sizes());
}

TEST(HuggingFaceLogits, AreTransformers) {
  const char* folder = std::getenv("LOCKSTEP_EXPECTED_LOGITS");
  if (!folder) GTEST_SKIP() << "NOT CHECKED: tests/python/hugging_face_test.py runs this";
  const SafetensorsFolder expected(std::string(folder) + "/expected");
  const auto all = [&](const char* name) { return expected.rows(name, 0, expected.sizes(name)[0]); };
  const auto tokens = all("tokens").to(at::kLong).contiguous();
  const auto log_probabilities = at::log_softmax(all("logits").to(at::kDouble), -1);
  Job job;
  job.checkpoint.initial_load_path = std::string(folder) + "/model";
  job.model = open_weights(job.checkpoint.initial_load_path)->model();
  job.model.dropout = job.model.attention_dropout = 0;
  job.training.seq_len = tokens.size(1),
  job.training.local_batch_size = job.training.global_batch_size = tokens.size(0);
  job.parallelism.data_parallel_shard_degree = 1;
  double worst = 0;
  for (const char* mesh : {"tp=1", "dp_shard=2,tp=2"})
    for (int64_t shift = 0; shift < *job.model.vocabulary; shift += 7) {
      const auto labels = (tokens * 5 + shift).remainder(*job.model.vocabulary).contiguous();
      const auto wanted = log_probabilities.gather(-1, labels.unsqueeze(-1)).squeeze(-1).neg();
      worst = std::max(worst, (losses_of(job, mesh, tokens, labels) - wanted).abs().max().item<double>());
    }
  RecordProperty("worst", std::to_string(worst));
  std::printf("worst %.3g\n", worst);
  EXPECT_LE(worst, 1e-5);
}

}  // namespace
}  // namespace lockstep::trainer
