#include "trainer/weights/hugging_face/decoder_config.h"

namespace lockstep::trainer {
namespace {

/// Of Llama 3.1; a job cannot change them.
constexpr double kLowFrequency = 1, kHighFrequency = 4, kOriginalLength = 8192;

/// Of transformers 5, "rope_parameters"; before, "rope_theta" and "rope_scaling".
void read_rotations(const ConfigReader& config, ModelSection& model) {
  const auto* key = config.find("rope_parameters") ? "rope_parameters" : "rope_scaling";
  model.rope_theta = config.number("rope_theta", 10000), model.rope_factor = 1;
  if (!config.find(key)) return;
  const auto rope = config.inner(key);
  model.rope_theta = rope.number("rope_theta", *model.rope_theta);
  const auto type = rope.text("rope_type", rope.text("type", "default").c_str());
  if (type == "default") return;
  rope.require<std::string>("rope_type", type, "llama3");
  model.rope_factor = rope.number("factor", 1);
  rope.require("low_freq_factor", rope.number("low_freq_factor", kLowFrequency), kLowFrequency);
  rope.require("high_freq_factor", rope.number("high_freq_factor", kHighFrequency), kHighFrequency);
  rope.require("original_max_position_embeddings", rope.number("original_max_position_embeddings", kOriginalLength),
               kOriginalLength);
}

/// As versions before 5 read them, too.
void add_rotations(const ModelSection& model, nlohmann::json& config) {
  config["rope_theta"] = *model.rope_theta;
  if (*model.rope_factor > 1)
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", *model.rope_factor},
                              {"low_freq_factor", kLowFrequency},
                              {"high_freq_factor", kHighFrequency},
                              {"original_max_position_embeddings", static_cast<int64_t>(kOriginalLength)}};
}

}  // namespace

void read_decoder(const ConfigReader& config, ModelSection& model) {
  model.width = config.count("hidden_size"), model.layers = config.count("num_hidden_layers");
  model.heads = config.count("num_attention_heads"), model.hidden = config.count("intermediate_size");
  model.key_value_heads = config.count("num_key_value_heads", *model.heads);
  model.vocabulary = config.count("vocab_size");
  model.dropout = 0, model.attention_dropout = config.number("attention_dropout", 0);
  model.norm_eps = config.number("rms_norm_eps", 1e-6);
  model.tied_head = config.flag("tie_word_embeddings", false);
  read_rotations(config, model);
  config.require<std::string>("hidden_act", config.text("hidden_act", "silu"), "silu");
}

nlohmann::json decoder_config(const ModelSection& model, int64_t length) {
  nlohmann::json json{{"hidden_size", *model.width},
                      {"intermediate_size", *model.hidden},
                      {"num_hidden_layers", *model.layers},
                      {"num_attention_heads", *model.heads},
                      {"num_key_value_heads", *model.key_value_heads},
                      {"vocab_size", *model.vocabulary},
                      {"hidden_act", "silu"},
                      {"rms_norm_eps", *model.norm_eps},
                      {"tie_word_embeddings", *model.tied_head},
                      {"max_position_embeddings", length}};
  add_rotations(model, json);
  return json;
}

}  // namespace lockstep::trainer
