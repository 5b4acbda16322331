#include "trainer/step/model_registry.h"

#include <algorithm>

#include "models/families/gpt2.h"
#include "models/families/llama.h"
#include "models/families/mlp.h"
#include "models/families/moe.h"
#include "trainer/job/job_keys.h"
#include "trainer/job/offered_names.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

/// What models with experts alone have.
void refuse_expert_sizes(const Job& job) {
  constexpr std::string_view kOthers[] = {"head_width", "query_key_norm", "unrotated_every"};
  for (const auto& key : model_keys())
    if (const bool is_theirs =
            key.section.starts_with("model.") || std::ranges::find(kOthers, key.name) != std::end(kOthers);
        is_theirs && !key.text(job).empty())
      fail<BadInput>("{} {}: model.name \"{}\" has no such size; leave it out.", key.dotted(), key.text(job),
                     job.model.name);
}

std::unique_ptr<models::Model> make_llama(const Job& job) {
  refuse_expert_sizes(job);
  auto options = llama_options(job.model);
  options.length = job.training.seq_len;
  options.cut_between_leaves = job.numerics.is_canonical();
  models::require_fitting_sizes(options);
  return std::make_unique<models::Llama>(options);
}

std::unique_ptr<models::Model> make_moe(const Job& job) {
  auto options = moe_options(job.model);
  options.dense.length = job.training.seq_len;
  options.dense.cut_between_leaves = job.numerics.is_canonical();
  models::require_fitting_sizes(options);
  return std::make_unique<models::Moe>(options);
}

template <class Size>
void refuse_size(const Job& job, const char* key, std::optional<Size> size) {
  if (size)
    fail<BadInput>("model.{} {}: model.name \"{}\" has no such size; leave it out.", key, *size, job.model.name);
}

/// What decoders of Llama's kind alone have.
void refuse_llama_sizes(const Job& job) {
  refuse_expert_sizes(job);
  refuse_size(job, "key_value_heads", job.model.key_value_heads);
  refuse_size(job, "rope_theta", job.model.rope_theta);
  refuse_size(job, "rope_factor", job.model.rope_factor);
  refuse_size(job, "norm_eps", job.model.norm_eps);
  refuse_size(job, "tied_head", job.model.tied_head);
  refuse_size(job, "attention_bias", job.model.attention_bias);
}

/// Positions are learned: there are as many as the flavor has.
std::unique_ptr<models::Model> make_gpt2(const Job& job) {
  refuse_llama_sizes(job);
  auto options = gpt2_options(job.model);
  options.cut_between_leaves = job.numerics.is_canonical();
  models::require_fitting_sizes(options);
  if (job.training.seq_len > options.positions)
    fail<BadInput>("training.seq_len {} is longer than the {} positions that model.flavor {} of gpt2 has.",
                   job.training.seq_len, options.positions, job.model.flavor);
  return std::make_unique<models::Gpt2>(options);
}

std::unique_ptr<models::Model> make_mlp(const Job& job) {
  refuse_size(job, "heads", job.model.heads);
  refuse_llama_sizes(job);
  refuse_size(job, "attention_dropout", job.model.attention_dropout);
  auto options = models::mlp_flavor(job.model.flavor);
  options.width = job.model.width.value_or(options.width);
  options.layers = job.model.layers.value_or(options.layers);
  options.hidden = job.model.hidden.value_or(options.hidden);
  options.vocabulary = job.model.vocabulary.value_or(options.vocabulary);
  options.dropout = job.model.dropout.value_or(options.dropout);
  return std::make_unique<models::Mlp>(options);
}

LinearRecipe float8_recipe(std::string_view name) {
  if (name == "tensorwise") return LinearRecipe::kTensorwise;
  return name == "rowwise" ? LinearRecipe::kRowwise : LinearRecipe::kRowwiseExactWeightGradient;
}

LinearRecipe mx_recipe(std::string_view name) {
  return name.starts_with("mxfp4") ? LinearRecipe::kMxfp4 : LinearRecipe::kMxfp8;
}

}  // namespace

Registry<ModelBuilder>& model_registry() {
  static Registry<ModelBuilder> all(
      "model.name", kModelNames, {{"gpt2", make_gpt2}, {"llama3", make_llama}, {"mlp", make_mlp}, {"moe", make_moe}});
  return all;
}

models::QuantizedLinears quantize_linears(const Job& job, models::Model& model) {
  if (job.model.converters.empty()) return {};
  const bool is_float8 = job.model.converts_by(kFloat8Converter);
  LinearQuantization quantization;
  quantization.recipe = is_float8 ? float8_recipe(job.float8.recipe_name) : mx_recipe(job.mx.recipe_name);
  quantization.rotated_block = job.quantize.rotated_block;
  return models::quantize_linears(model, quantization, is_float8 ? job.float8.filter_fqns : job.mx.filter_fqns,
                                  is_float8 && job.float8.enable_fsdp_float8_all_gather);
}

std::unique_ptr<models::Model> make_model(const Job& job) {
  auto model = model_registry().at(job.model.name)(job);
  quantize_linears(job, *model);
  return model;
}

}  // namespace lockstep::trainer
