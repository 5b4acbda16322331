#include "trainer/step/model_registry.h"

#include "models/gpt2.h"
#include "models/llama.h"
#include "models/mlp.h"
#include "trainer/job/offered_names.h"

namespace lockstep::trainer {
namespace {

/// The sizes that all models have.
template <class Options>
void take_sizes(const ModelSection& model, Options& options) {
  options.width = model.width.value_or(options.width);
  options.layers = model.layers.value_or(options.layers);
  options.hidden = model.hidden.value_or(options.hidden);
  options.vocabulary = model.vocabulary.value_or(options.vocabulary);
  options.dropout = model.dropout.value_or(options.dropout);
}

/// Of models that have attention.
template <class Options>
void take_attention(const ModelSection& model, Options& options) {
  options.heads = model.heads.value_or(options.heads);
  options.attention_dropout = model.attention_dropout.value_or(options.attention_dropout);
}

std::unique_ptr<models::Model> make_llama(const Job& job) {
  auto options = models::llama_flavor(job.model.flavor);
  take_sizes(job.model, options);
  take_attention(job.model, options);
  options.key_value_heads = job.model.key_value_heads.value_or(options.key_value_heads);
  options.length = job.training.seq_len;
  options.cut_between_leaves = job.numerics.is_canonical();
  models::require_fitting_sizes(options);
  return std::make_unique<models::Llama>(options);
}

template <class Size>
void refuse_size(const Job& job, const char* key, std::optional<Size> size) {
  if (size)
    fail<BadInput>("model.{} {}: model.name \"{}\" has no such size; leave it out.", key, *size, job.model.name);
}

/// Positions are learned: there are as many as the flavor has.
std::unique_ptr<models::Model> make_gpt2(const Job& job) {
  refuse_size(job, "key_value_heads", job.model.key_value_heads);
  auto options = models::gpt2_flavor(job.model.flavor);
  take_sizes(job.model, options);
  take_attention(job.model, options);
  options.cut_between_leaves = job.numerics.is_canonical();
  models::require_fitting_sizes(options);
  if (job.training.seq_len > options.positions)
    fail<BadInput>("training.seq_len {} is longer than the {} positions that model.flavor {} of gpt2 has.",
                   job.training.seq_len, options.positions, job.model.flavor);
  return std::make_unique<models::Gpt2>(options);
}

std::unique_ptr<models::Model> make_mlp(const Job& job) {
  refuse_size(job, "heads", job.model.heads);
  refuse_size(job, "key_value_heads", job.model.key_value_heads);
  refuse_size(job, "attention_dropout", job.model.attention_dropout);
  auto options = models::mlp_flavor(job.model.flavor);
  take_sizes(job.model, options);
  return std::make_unique<models::Mlp>(options);
}

}  // namespace

Registry<ModelBuilder>& model_registry() {
  static Registry<ModelBuilder> all("model.name", kModelNames,
                                    {{"gpt2", make_gpt2}, {"llama3", make_llama}, {"mlp", make_mlp}});
  return all;
}

std::unique_ptr<models::Model> make_model(const Job& job) { return model_registry().at(job.model.name)(job); }

}  // namespace lockstep::trainer
