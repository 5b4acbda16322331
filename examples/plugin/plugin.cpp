// A plug-in: a model, a dataset, an optimizer and a schedule that jobs may name, without rebuilding Lockstep.
//
//   lockstep train job.toml --plugin ./libplugin.so --model.name bigram --training.dataset squares
#include "trainer/plugin/plugin.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "core/error.h"
#include "models/layers.h"

namespace {

using namespace lockstep;

/// What follows a token depends on that token alone: a table of logits.
class Bigram : public models::Model {
 public:
  explicit Bigram(int64_t vocabulary)
      : vocabulary_(vocabulary), table_(*this, "table", vocabulary, vocabulary, models::Initial::fill(0)) {}

  at::Tensor forward(const at::Tensor& tokens) override {
    return models::run_block(table_, tokens, [this](const at::Tensor& input) {
      return models::annotate(table_.forward(input), "batch length embed");
    });
  }
  int64_t vocabulary() const override { return vocabulary_; }
  std::vector<models::Module*> blocks() override { return {&table_}; }

 private:
  int64_t vocabulary_;
  models::Embedding table_;
};

std::unique_ptr<models::Model> make_bigram(const trainer::Job& job) {
  return std::make_unique<Bigram>(job.model.vocabulary.value_or(32));
}

/// Token t of sample i is (i + t)^2 modulo the vocabulary: no file is read.
class Squares final : public trainer::Dataset {
 public:
  Squares(int64_t seq_len, int64_t vocabulary) : seq_len_(seq_len), vocabulary_(vocabulary) {}

  int64_t samples() const override { return vocabulary_; }

  trainer::TokenBatch batch(int64_t start, int64_t count) const override {
    trainer::TokenBatch batch{count, seq_len_, {}, {}, start};
    for (int64_t i = start; i < start + count; ++i)
      for (int64_t t = 0; t < seq_len_; ++t) {
        batch.tokens.push_back(token(i + t));
        batch.labels.push_back(token(i + t + 1));
      }
    return batch;
  }

 private:
  int64_t token(int64_t place) const { return place % vocabulary_ * (place % vocabulary_) % vocabulary_; }

  int64_t seq_len_, vocabulary_;
};

std::unique_ptr<trainer::Dataset> make_squares(const trainer::Job& job, int64_t vocabulary) {
  return std::make_unique<Squares>(job.training.seq_len, vocabulary);
}

/// Each element moves by the learning rate, whatever its gradient's size (signSGD; Bernstein et al., 2018).
class SignDescent final : public trainer::Optimizer {
 public:
  std::vector<trainer::SlotKind> slots(const trainer::ParameterState&) const override { return {}; }
  std::vector<trainer::StepScalar> scalars(int64_t, double learning_rate, double) const override {
    return {{"learning_rate", learning_rate}};
  }
  void update(const trainer::ParameterState& parameter, const at::Tensor& gradient,
              std::span<const trainer::StepScalar> scalars) const override {
    at::Tensor value = parameter.value;
    value.sub_(at::sign(gradient) * trainer::value_of(scalars, "learning_rate"));
  }
};

std::unique_ptr<trainer::Optimizer> make_sign_descent(const trainer::Job&) { return std::make_unique<SignDescent>(); }

/// Slow at the end: (1 - p)^2.
double quadratic(const trainer::DecayPoint& at) { return (1 - at.progress) * (1 - at.progress); }

}  // namespace

LOCKSTEP_PLUGIN(plugin) {
  plugin.model({"bigram", "a table of what follows each token"}, make_bigram);
  plugin.dataset({"squares", "squares modulo the vocabulary"}, make_squares);
  plugin.optimizer({"SignSGD", "steps of one size, by the gradient's sign"}, make_sign_descent);
  plugin.schedule({"quadratic"}, quadratic);
}
