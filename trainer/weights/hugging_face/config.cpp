#include "trainer/weights/hugging_face/config.h"

#include <nlohmann/json.hpp>

#include "core/files/random_access_file.h"
#include "trainer/checkpoint/strict_json.h"
#include "trainer/weights/hugging_face/config_reader.h"
#include "trainer/weights/hugging_face/decoder_config.h"
#include "trainer/weights/hugging_face/expert_config.h"

namespace lockstep::trainer {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = 1 << 20;
constexpr int64_t kGpt2Positions = 1024;

ModelSection read_llama(const ConfigReader& config, const std::string& kind) {
  ModelSection model{.name = "llama3"};
  read_decoder(config, model);
  model.attention_bias = kind == "qwen2";
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
  auto json = decoder_config(model, length);
  json["architectures"] = {is_qwen ? "Qwen2ForCausalLM" : "LlamaForCausalLM"};
  json["model_type"] = is_qwen ? "qwen2" : "llama";
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
