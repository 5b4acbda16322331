#include "trainer/weights/model_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "models/families/moe.h"
#include "trainer/job/job_keys.h"

namespace lockstep::trainer {
namespace {

// Call visit(the job's, the options') for each size: those that all models have that hold attention, those that
// decoders of Llama's kind have besides, and those of models with experts.

template <class Model, class Options, class Visit>
void visit_sizes(Model& model, Options&& options, const Visit& visit) {
  visit(model.width, options.width), visit(model.layers, options.layers), visit(model.heads, options.heads);
  visit(model.hidden, options.hidden), visit(model.vocabulary, options.vocabulary);
  visit(model.dropout, options.dropout), visit(model.attention_dropout, options.attention_dropout);
}

template <class Model, class Options, class Visit>
void visit_llama_sizes(Model& model, Options&& options, const Visit& visit) {
  visit_sizes(model, options, visit);
  visit(model.key_value_heads, options.key_value_heads);
  visit(model.rope_theta, options.rope_theta), visit(model.rope_factor, options.rope_factor);
  visit(model.norm_eps, options.norm_epsilon);
  visit(model.tied_head, options.tied_head), visit(model.attention_bias, options.attention_bias);
}

template <class Model, class Options, class Visit>
void visit_moe_sizes(Model& model, Options& options, const Visit& visit) {
  visit_llama_sizes(model, options.dense, visit);
  visit(model.head_width, options.dense.head_width);
  visit(model.query_key_norm, options.dense.query_key_norm);
  visit(model.unrotated_every, options.dense.unrotated_every);
  auto& [count, per_token, hidden, shared, groups, groups_per_token, dense_layers, every, sigmoid_scores, normalized,
         score_before_experts, scale, capacity_factor, balance_rate, auxiliary_loss] = model.experts;
  visit(count, options.experts.count), visit(per_token, options.experts.per_token);
  visit(hidden, options.experts.hidden), visit(shared, options.experts.shared);
  visit(groups, options.experts.groups), visit(groups_per_token, options.experts.groups_per_token);
  visit(dense_layers, options.dense_layers), visit(every, options.experts_every);
  visit(sigmoid_scores, options.experts.sigmoid_scores), visit(normalized, options.experts.normalized);
  visit(score_before_experts, options.experts.score_before_experts), visit(scale, options.experts.scale);
  visit(capacity_factor, options.experts.capacity_factor), visit(balance_rate, options.experts.balance_rate);
  visit(auxiliary_loss, options.experts.auxiliary_loss);
  auto& [query_rank, key_value_rank, plain_size, rotated_size, value_size] = model.latent_attention;
  visit(query_rank, options.latent.query_rank), visit(key_value_rank, options.latent.key_value_rank);
  visit(plain_size, options.latent.plain_size), visit(rotated_size, options.latent.rotated_size);
  visit(value_size, options.latent.value_size);
}

/// The job's size where it gives one.
constexpr auto kTake = [](const auto& given, auto& size) { size = given.value_or(size); };
constexpr auto kGive = [](auto& given, const auto& size) { given = size; };

bool has_biases(const Job& job) { return job.model.experts.balance_rate.value_or(0) > 0; }

/// The weights and what is made of them, not how they are trained.
bool differs(const Key& key, const Job& here, const Job& there) {
  constexpr std::string_view kTraining[] = {"flavor", "dropout", "attention_dropout", "capacity_factor",
                                            "auxiliary_loss"};
  if (!key.section.starts_with("model") || std::ranges::find(kTraining, key.name) != std::end(kTraining)) return false;
  return key.name == "balance_rate" ? has_biases(here) != has_biases(there) : key.text(here) != key.text(there);
}

std::unique_ptr<models::Model> model_of(const ModelSection& model) {
  if (model.name == "gpt2") {
    const auto options = gpt2_options(model);
    models::require_fitting_sizes(options);
    return std::make_unique<models::Gpt2>(options);
  }
  if (model.name == "moe") {
    auto options = moe_options(model);
    options.dense.length = 1;
    models::require_fitting_sizes(options);
    return std::make_unique<models::Moe>(options);
  }
  auto options = llama_options(model);
  options.length = 1;
  models::require_fitting_sizes(options);
  return std::make_unique<models::Llama>(options);
}

}  // namespace

models::LlamaOptions llama_options(const ModelSection& model) {
  auto options = models::llama_flavor(model.flavor);
  visit_llama_sizes(model, options, kTake);
  return options;
}

models::MoeOptions moe_options(const ModelSection& model) {
  auto options = models::moe_flavor(model.flavor);
  visit_moe_sizes(model, options, kTake);
  return options;
}

models::Gpt2Options gpt2_options(const ModelSection& model) {
  auto options = models::gpt2_flavor(model.flavor);
  visit_sizes(model, options, kTake);
  return options;
}

ModelSection with_all_sizes(const ModelSection& model) {
  auto all = model;
  if (model.name == "gpt2") visit_sizes(all, gpt2_options(model), kGive);
  if (model.name == "llama3") visit_llama_sizes(all, llama_options(model), kGive);
  if (model.name != "moe") return all;
  const auto options = moe_options(model);
  visit_moe_sizes(all, options, kGive);
  if (!options.latent.enabled() && options.dense.width % options.dense.heads == 0)
    all.head_width = options.dense.head_size();
  if (!options.has_dense_layers()) all.hidden = options.experts.hidden;  // nobody reads it
  return all;
}

std::map<std::string, std::vector<int64_t>> stored_sizes(const ModelSection& model) {
  std::map<std::string, std::vector<int64_t>> sizes;
  const auto built = model_of(model);  // parameters without tensors
  for (const auto* parameter : built->parameters()) {
    const auto& division = parameter->division();
    for (size_t part = 0; part < division.parts().size(); ++part)
      sizes[division.parts()[part].name] = division.sizes_of(part);
  }
  return sizes;
}

std::vector<std::string> model_differences(const ModelSection& model, const ModelSection& expected) {
  Job here, there;
  here.model = model, there.model = expected;
  std::vector<std::string> differences;
  for (const auto& key : job_keys()) {
    if (!differs(key, here, there)) continue;
    const auto text = [&](const Job& job) { return key.text(job).empty() ? "not set" : key.text(job); };
    differences.push_back(fmt::format("{} is {}, not {}", key.dotted(), text(here), text(there)));
  }
  return differences;
}

}  // namespace lockstep::trainer
