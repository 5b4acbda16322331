#include "trainer/weights/hugging_face/config.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "trainer/checkpoint/strict_json.h"

namespace lockstep::trainer {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMostBytes = 1 << 20;
/// Of Llama 3.1; a job cannot change them.
constexpr double kLowFrequency = 1, kHighFrequency = 4, kOriginalLength = 8192;
constexpr int64_t kGpt2Positions = 1024;

/// A config.json, key by key.
class Config {
 public:
  Config(const Json& json, const std::string& path) : json_(json), path_(path) {
    if (!json.is_object()) fail<FileError>("{}: an object was expected.", path);
  }

  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(const char* key, double otherwise) const {
    const auto* value = find(key);
    if (!value) return otherwise;
    if (!value->is_number()) fail_type(key, "a number");
    return value->get<double>();
  }
  int64_t count(const char* key) const {
    const auto* value = find(key);
    if (!value || !value->is_number_integer() || value->get<int64_t>() < 1) fail_type(key, "an integer of at least 1");
    return value->get<int64_t>();
  }
  int64_t count(const char* key, int64_t otherwise) const { return find(key) ? count(key) : otherwise; }
  bool flag(const char* key, bool otherwise) const {
    const auto* value = find(key);
    if (value && !value->is_boolean()) fail_type(key, "true or false");
    return value ? value->get<bool>() : otherwise;
  }
  std::string text(const char* key, const char* otherwise) const {
    const auto* value = find(key);
    if (value && !value->is_string()) fail_type(key, "a string");
    return value ? value->get<std::string>() : otherwise;
  }
  Config inner(const char* key) const { return {*find(key), path_}; }

  template <class T>
  void require(const char* key, const T& value, const T& wanted) const {
    if (!(value >= wanted && value <= wanted))
      fail<BadInput>("{}: {} is {}; the model here has {}.", path_, key, Json(value).dump(), Json(wanted).dump());
  }
  void require_absent(const char* key) const {
    if (find(key)) fail<BadInput>("{}: has {}, which the model here has not.", path_, key);
  }
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail_type(const char* key, const char* wanted) const {
    fail<FileError>("{}: {} must be {}.", path_, key, wanted);
  }

  const Json& json_;
  const std::string& path_;
};

/// Of transformers 5, "rope_parameters"; before, "rope_theta" and "rope_scaling".
void read_rotations(const Config& config, ModelSection& model) {
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

ModelSection read_llama(const Config& config, const std::string& kind) {
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

ModelSection read_gpt2(const Config& config) {
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
            {"max_position_embeddings", length},
            {"rope_theta", *model.rope_theta}};
  if (*model.rope_factor > 1)
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", *model.rope_factor},
                            {"low_freq_factor", kLowFrequency},
                            {"high_freq_factor", kHighFrequency},
                            {"original_max_position_embeddings", static_cast<int64_t>(kOriginalLength)}};
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
  const Config config(json, path);
  config.require_absent("quantization_config");
  const auto kind = config.text("model_type", "");
  if (kind == "gpt2") return read_gpt2(config);
  if (kind == "llama" || kind == "mistral" || kind == "qwen2") return read_llama(config, kind);
  fail<BadInput>("{}: model_type is \"{}\"; llama, mistral, qwen2 and gpt2 can be read.", path, kind);
}

std::string hugging_face_config(const ModelSection& model, int64_t length, const std::string& dtype) {
  auto json = model.name == "gpt2" ? gpt2_config(model) : llama_config(model, length);
  json["torch_dtype"] = dtype;
  return json.dump(2) + "\n";
}

}  // namespace lockstep::trainer
