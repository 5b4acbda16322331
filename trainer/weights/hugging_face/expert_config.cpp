#include "trainer/weights/hugging_face/expert_config.h"

#include <algorithm>

#include "core/error.h"
#include "trainer/job/job_keys.h"
#include "trainer/weights/hugging_face/decoder_config.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

using Json = nlohmann::json;

constexpr const char *kMixtral = "mixtral", *kQwen = "qwen3_moe", *kDeepseek = "deepseek_v3";
constexpr double kUsualBalanceRate = 1e-3;  ///< DeepSeek-V3, 2024, section 4.2

/// What only one value of is computed there.
struct Fixed {
  const char *kind, *key, *value;
};
constexpr Fixed kFixed[] = {
    {"", "model.attention_bias", "false"},
    {"", "model.unrotated_every", "0"},
    {"", "model.experts.capacity_factor", "0.0"},
    {"", "model.experts.score_before_experts", "false"},
    {kMixtral, "model.experts.sigmoid_scores", "false"},
    {kMixtral, "model.experts.normalized", "true"},
    {kMixtral, "model.experts.scale", "1.0"},
    {kMixtral, "model.experts.shared", "0"},
    {kMixtral, "model.experts.groups", "1"},
    {kMixtral, "model.experts.balance_rate", "0.0"},
    {kMixtral, "model.experts.dense_layers", "0"},
    {kMixtral, "model.experts.every", "1"},
    {kQwen, "model.experts.sigmoid_scores", "false"},
    {kQwen, "model.experts.scale", "1.0"},
    {kQwen, "model.experts.shared", "0"},
    {kQwen, "model.experts.groups", "1"},
    {kQwen, "model.experts.balance_rate", "0.0"},
    {kDeepseek, "model.experts.sigmoid_scores", "true"},
    {kDeepseek, "model.experts.every", "1"},
    {kDeepseek, "model.rope_factor", "1.0"},
    {kDeepseek, "model.norm_eps", "1e-06"},  // of norms inside of attention, whatever the configuration says
    {kDeepseek, "model.query_key_norm", "false"},
};

void require_fixed(const ModelSection& model, const std::string& kind) {
  Job job;
  job.model = model;
  for (const auto& fixed : kFixed)
    if (const auto text = find_job_key(fixed.key)->text(job);
        (*fixed.kind == 0 || kind == fixed.kind) && text != fixed.value)
      fail<BadInput>("{} is {}; transformers' {} has {}: this model cannot be exported.", fixed.key, text, kind,
                     fixed.value);
  if (kind != kDeepseek) return;
  if (*model.experts.shared == 0)
    fail<BadInput>("model.experts.shared is 0; transformers' {} has shared experts: this model cannot be exported.",
                   kind);
  if (!(*model.experts.balance_rate > 0))
    fail<BadInput>("model.experts.balance_rate is 0; transformers' {} has biases: this model cannot be exported.",
                   kind);
}

void read_mixtral(const ConfigReader& config, ModelSection& model) {
  model.experts.count = config.count("num_local_experts"), model.experts.hidden = model.hidden;
  model.head_width = config.count("head_dim", *model.width / *model.heads);
  config.require("router_jitter_noise", config.number("router_jitter_noise", 0), 0.0);
  config.require_absent("sliding_window");
}

/// The layers of "mlp_only_layers" have no experts: the first ones, here.
int64_t dense_layers(const ConfigReader& config) {
  const auto* layers = config.find("mlp_only_layers");
  if (!layers) return 0;
  auto first = Json::array();
  for (size_t layer = 0; layer < layers->size(); ++layer) first.push_back(layer);
  config.require("mlp_only_layers", *layers, first);
  return static_cast<int64_t>(first.size());
}

void read_qwen3(const ConfigReader& config, ModelSection& model) {
  model.experts.count = config.count(config.find("num_experts") ? "num_experts" : "num_local_experts");
  model.experts.hidden = config.count("moe_intermediate_size");
  model.experts.normalized = config.flag("norm_topk_prob", false);
  model.experts.every = config.count("decoder_sparse_step", 1), model.experts.dense_layers = dense_layers(config);
  model.head_width = config.count("head_dim", *model.width / *model.heads), model.query_key_norm = true;
  if (config.flag("use_sliding_window", false)) config.require_absent("sliding_window");
}

void read_deepseek(const ConfigReader& config, ModelSection& model) {
  auto& experts = model.experts;
  model.head_width = 0;
  experts.count = config.count("n_routed_experts"), experts.hidden = config.count("moe_intermediate_size");
  experts.shared = config.count("n_shared_experts"), experts.sigmoid_scores = true;
  experts.normalized = config.flag("norm_topk_prob", true), experts.scale = config.number("routed_scaling_factor", 2.5);
  experts.groups = config.count("n_group"), experts.groups_per_token = config.count("topk_group");
  experts.balance_rate = kUsualBalanceRate;
  experts.dense_layers = config.find("first_k_dense_replace") ? config.number("first_k_dense_replace", 0) : 3;
  model.latent_attention = {config.find("q_lora_rank") ? config.count("q_lora_rank") : 0, config.count("kv_lora_rank"),
                            config.count("qk_nope_head_dim"), config.count("qk_rope_head_dim"),
                            config.count("v_head_dim")};
  config.require("rope_interleave", config.flag("rope_interleave", true), true);
  config.require<std::string>("scoring_func", config.text("scoring_func", "sigmoid"), "sigmoid");
  config.require<std::string>("topk_method", config.text("topk_method", "noaux_tc"), "noaux_tc");
  config.require("moe_layer_freq", config.count("moe_layer_freq", 1), int64_t{1});
  config.require("rope_scaling", *model.rope_factor, 1.0);
  config.require("rms_norm_eps", *model.norm_eps, 1e-6);
}

Json first_layers(int64_t count) {
  auto layers = Json::array();
  for (int64_t layer = 0; layer < count; ++layer) layers.push_back(layer);
  return layers;
}

Json mixtral_config(const ModelSection& model) {
  return {{"architectures", {"MixtralForCausalLM"}},
          {"intermediate_size", *model.experts.hidden},
          {"num_local_experts", *model.experts.count}};
}

Json qwen3_config(const ModelSection& model) {
  return {
      {"architectures", {"Qwen3MoeForCausalLM"}},    {"moe_intermediate_size", *model.experts.hidden},
      {"num_experts", *model.experts.count},         {"norm_topk_prob", *model.experts.normalized},
      {"decoder_sparse_step", *model.experts.every}, {"mlp_only_layers", first_layers(*model.experts.dense_layers)}};
}

Json deepseek_config(const ModelSection& model) {
  const auto& [query_rank, key_value_rank, plain_size, rotated_size, value_size] = model.latent_attention;
  return {{"architectures", {"DeepseekV3ForCausalLM"}},
          {"moe_intermediate_size", *model.experts.hidden},
          {"n_routed_experts", *model.experts.count},
          {"n_shared_experts", *model.experts.shared},
          {"n_group", *model.experts.groups},
          {"topk_group", *model.experts.groups_per_token},
          {"norm_topk_prob", *model.experts.normalized},
          {"routed_scaling_factor", *model.experts.scale},
          {"first_k_dense_replace", *model.experts.dense_layers},
          {"q_lora_rank", *query_rank > 0 ? Json(*query_rank) : Json()},
          {"kv_lora_rank", *key_value_rank},
          {"qk_nope_head_dim", *plain_size},
          {"qk_rope_head_dim", *rotated_size},
          {"v_head_dim", *value_size}};
}

Json config_of_kind(const ModelSection& model, const std::string& kind) {
  if (kind == kDeepseek) return deepseek_config(model);
  auto json = kind == kQwen ? qwen3_config(model) : mixtral_config(model);
  json["head_dim"] = *model.head_width > 0 ? *model.head_width : *model.width / *model.heads;
  return json;
}

}  // namespace

bool is_expert_kind(const std::string& kind) { return kind == kMixtral || kind == kQwen || kind == kDeepseek; }

std::string expert_kind(const ModelSection& model) {
  std::string kind = *model.latent_attention.key_value_rank > 0 ? kDeepseek : *model.query_key_norm ? kQwen : kMixtral;
  require_fixed(model, kind);
  return kind;
}

ModelSection read_expert_model(const ConfigReader& config, const std::string& kind) {
  auto model = with_all_sizes({.name = "moe"});
  read_decoder(config, model);
  config.require("attention_bias", config.flag("attention_bias", false), false);
  model.experts.per_token = config.count("num_experts_per_tok");
  model.experts.auxiliary_loss = 0;  // theirs is of a whole batch
  if (kind == kMixtral) read_mixtral(config, model);
  if (kind == kQwen) read_qwen3(config, model);
  if (kind == kDeepseek) read_deepseek(config, model);
  return model;
}

Json expert_config(const ModelSection& model, int64_t length) {
  const auto kind = expert_kind(model);
  auto json = decoder_config(model, length);
  json.update(config_of_kind(model, kind));
  json["model_type"] = kind, json["num_experts_per_tok"] = *model.experts.per_token;
  return json;
}

}  // namespace lockstep::trainer
