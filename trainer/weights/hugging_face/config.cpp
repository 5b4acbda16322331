#include "trainer/weights/hugging_face/config.h"

#include <nlohmann/json.hpp>

#include "core/files/random_access_file.h"
#include "trainer/checkpoint/strict_json.h"
#include "trainer/weights/hugging_face/config_reader.h"
#include "trainer/weights/hugging_face/expert_config.h"
#include "trainer/weights/hugging_face/rotations.h"

namespace lockstep::trainer {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = 1 << 20;
constexpr int64_t kGpt2Positions = 1024;

ModelSection read_llama(const ConfigReader& config, const std::string& kind) {
  ModelSection model{.name = "llama3"};
  model.width = config.count("hidden_size"), model.layers = config.count("num_hidden_layers");
  model.heads = config.count("num_attention_heads"), model.hidden = config.count("intermediate_size");
  model.key_value_heads = config.count("num_key_value_heads", *model.heads);
  model.vocabulary = config.count("vocab_size");
  model.dropout = 0, model.attention_dropout = config.number("attention_dropout", 0);
  model.norm_eps = config.number("rms_norm_eps", 1e-6);
  model.tied_head = config.flag("tie_word_embeddings", false);
  model.attention_bias = kind == "qwen2";
  read_rotations(config, model);
  config.require<std::string>("hidden_act", config.text("hidden_act", "silu"), "silu");
  if (kind != "qwen2") config.require("attention_bias", config.flag("attention_bias", false), false);
  config.require("mlp_bias", config.flag("mlp_bias", false), false);
  config.require("head_dim", config.count("head_dim", *model.width / *model.heads), *model.width / *model.heads);
  if (kind == "qwen2" ? config.flag("use_sliding_window", false) : true) config.require_absent("sliding_window");
  return model;
}

ModelSection read_gpt2(const ConfigReader& config) {
  ModelSection model{.name = "gpt2"};
  model.width = config.count("n_embd"), model.layers = config.count("n_layer"), model.heads = config.count("n_head");
  model.hidden = config.count("n_inner", 4 * *model.width), model.vocabulary = config.count("vocab_size");
  model.dropout = config.number("resid_pdrop", 0.1), model.attention_dropout = config.number("attn_pdrop", 0);
  config.require("n_positions", config.count("n_positions", kGpt2Positions), kGpt2Positions);
  config.require<std::string>("activation_function", config.text("activation_function", "gelu_new"), "gelu_new");
  config.require("layer_norm_epsilon", config.number("layer_norm_epsilon", 1e-5), 1e-5);
  config.require("tie_word_embeddings", config.flag("tie_word_embeddings", true), true);
  return model;
}

Json llama_config(const ModelSection& model, int64_t length) {
  const bool is_qwen = *model.attention_bias;
  Json json{{"architectures", {is_qwen ? "Qwen2ForCausalLM" : "LlamaForCausalLM"}},
            {"model_type", is_qwen ? "qwen2" : "llama"},
            {"hidden_size", *model.width},
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

Json gpt2_config(const ModelSection& model) {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"n_embd", *model.width},
          {"n_layer", *model.layers},
          {"n_head", *model.heads},
          {"n_inner", *model.hidden},
          {"vocab_size", *model.vocabulary},
          {"n_positions", kGpt2Positions},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5}};
}

}  // namespace

ModelSection read_hugging_face_config(const std::string& path) {
  const auto json = parse_strict_json(RandomAccessFile(path).text(kMostBytes), path);
  const ConfigReader config(json, path);
  config.require_absent("quantization_config");
  const auto kind = config.text("model_type", "");
  if (kind == "gpt2") return read_gpt2(config);
  if (kind == "llama" || kind == "mistral" || kind == "qwen2") return read_llama(config, kind);
  if (is_expert_kind(kind)) return read_expert_model(config, kind);
  fail<BadInput>(
      "{}: model_type is \"{}\"; llama, mistral, qwen2, gpt2, mixtral, qwen3_moe and deepseek_v3 can be read.", path,
      kind);
}

std::string hugging_face_config(const ModelSection& model, int64_t length, const std::string& dtype) {
  auto json = model.name == "gpt2"  ? gpt2_config(model)
              : model.name == "moe" ? expert_config(model, length)
                                    : llama_config(model, length);
  json["torch_dtype"] = dtype;
  return json.dump(2) + "\n";
}

}  // namespace lockstep::trainer
