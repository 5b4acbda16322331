#include "trainer/generate/generate.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "models/layers.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

void require_prompt(TrainingRun& run, const std::vector<int64_t>& prompt) {
  if (prompt.empty()) fail<BadInput>("the prompt is empty; a model goes on with at least one token.");
  for (size_t i = 0; i < prompt.size(); ++i)
    if (prompt[i] < 0 || prompt[i] >= run.model().vocabulary())
      fail<BadInput>("token {} of the prompt is {}; the model knows 0 to {}.", i, prompt[i],
                     run.model().vocabulary() - 1);
}

/// Texts that grow side by side.
class Writer {
 public:
  Writer(TrainingRun& run, const std::vector<int64_t>& prompt, const GenerateOptions& options)
      : run_(run), options_(options), texts_(static_cast<size_t>(options.samples)) {
    tokens_ = at::tensor(prompt, at::kLong).unsqueeze(0).repeat({options.samples, 1});
    for (auto& text : texts_) text.tokens = prompt;
    read_prompt();
  }

  std::vector<Generated> write() {
    for (int64_t i = 0; i < options_.count; ++i) {
      const auto next = add_tokens();
      if (i + 1 < options_.count) last_ = read(next).select(1, -1);
    }
    return std::move(texts_);
  }

 private:
  int64_t length() const { return tokens_.size(1); }

  /// Logits [samples, count, vocabulary] behind each of the last tokens of all, [samples, count].
  at::Tensor read(const at::Tensor& tokens) {
    const auto logits = options_.cached ? run_.logits(tokens, &cache_) : run_.logits(tokens_);
    return logits.narrow(1, logits.size(1) - tokens.size(1), tokens.size(1));
  }

  void read_prompt() {
    const int64_t chunk = options_.cached && options_.chunk > 0 ? options_.chunk : length();
    for (int64_t first = 0; first < length(); first += chunk) {
      const auto count = std::min(chunk, length() - first);
      const auto after = read(tokens_.narrow(1, first, count));
      const auto known = std::min(count, length() - 1 - first);
      if (known > 0) note(after.narrow(1, 0, known), tokens_.narrow(1, first + 1, known));
      last_ = after.select(1, -1);
    }
  }

  /// What was said of tokens [samples, count]: as training's loss has it.
  void note(const at::Tensor& logits, const at::Tensor& tokens) {
    const RunContext::Use use(run_.context());
    const at::NoGradGuard no_grad;
    const auto everywhere = [&](const at::Tensor& x) {
      return distribute(x.contiguous(), Layout::replicated(run_.mesh()));
    };
    const auto losses = gather(mesh_ops::token_losses(everywhere(logits), everywhere(tokens), kIgnoredLabel));
    for (size_t i = 0; i < texts_.size(); ++i)
      for (int64_t k = 0; k < tokens.size(1); ++k)
        texts_[i].log_probabilities.push_back(-losses[static_cast<int64_t>(i)][k].item<double>());
  }

  /// Draws one token for each text: [samples, 1].
  at::Tensor add_tokens() {
    auto next = at::empty({options_.samples, 1}, at::kLong);
    const auto rows = last_.contiguous();
    const auto vocabulary = static_cast<size_t>(rows.size(1));
    for (size_t i = 0; i < texts_.size(); ++i) {
      const std::span<const float> row(rows.const_data_ptr<float>() + i * vocabulary, vocabulary);
      const auto token = next_token(row, options_.sampling, static_cast<int64_t>(i), length());
      texts_[i].tokens.push_back(token);
      next.mutable_data_ptr<int64_t>()[i] = token;
    }
    note(last_.unsqueeze(1), next);
    tokens_ = at::cat({tokens_, next}, 1);
    return next;
  }

  TrainingRun& run_;
  const GenerateOptions& options_;
  std::vector<Generated> texts_;
  models::KeyValueCache cache_;
  at::Tensor tokens_;  ///< [samples, length]
  at::Tensor last_;    ///< logits [samples, vocabulary] behind the last token
};

}  // namespace

std::unique_ptr<models::Model> make_int8_model(const Job& job) {
  auto high = job;
  high.model.converters.clear();
  auto model = make_model(high);
  models::quantize_linears(*model, {.recipe = LinearRecipe::kInt8Weights}, {}, false);
  return model;
}

std::vector<WeightError> int8_errors(TrainingRun& run) {
  const RunContext::Use use(run.context());
  const at::NoGradGuard no_grad;
  std::vector<WeightError> errors;
  for (auto* module : run.model().modules()) {
    auto* linear = dynamic_cast<models::Linear*>(module);
    if (!linear || !linear->quantization()) continue;
    const auto weight = linear->weight().tensor();
    const auto difference = gather(quantized_weight(weight, *linear->quantization())) - gather(weight);
    errors.push_back({linear->weight().name(), (difference.norm() / gather(weight).norm()).item<double>()});
  }
  return errors;
}

std::vector<Generated> generate(TrainingRun& run, const std::vector<int64_t>& prompt, const GenerateOptions& options) {
  require_prompt(run, prompt);
  LOCKSTEP_CHECK(options.samples >= 1 && options.count >= 0);
  return Writer(run, prompt, options).write();
}

}  // namespace lockstep::trainer
