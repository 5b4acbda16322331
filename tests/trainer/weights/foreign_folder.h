#pragma once
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/plain/tensor_bytes.h"
#include "tests/support/temporary_folder.h"
#include "trainer/checkpoint/safetensors.h"

namespace lockstep::testing {

/// A folder as transformers saves it, of a model of 2 layers of width 16, 4 heads, 2 of keys and values (gpt2: 4),
/// whose every element is another number that all types hold.
class ForeignFolder {
 public:
  ForeignFolder(const std::string& kind, const nlohmann::json& config, const std::string& dtype = "F32", int parts = 1)
      : dtype_(dtype), parts_(parts) {
    config_ = kind == "gpt2" ? gpt2_config() : llama_config(kind);
    if (!config.is_null()) config_.update(config);
    kind == "gpt2" ? add_gpt2() : add_llama(kind == "qwen2", config_.value("tie_word_embeddings", false));
    write_all();
  }

  std::string path() const { return folder_.file("model"); }
  at::Tensor value(const std::string& name) const { return tensors_.at(name).to(at::kFloat); }
  void remove(const std::string& file) const { std::filesystem::remove(path() + "/" + file); }
  void write(const std::string& file, const std::string& text) const { std::ofstream(path() + "/" + file) << text; }
  void change_config(const nlohmann::json& change) {
    if (!change.is_null()) config_.update(change);
    write("config.json", config_.dump());
  }
  void change(const std::string& name, int64_t element, double value) {
    tensors_.at(name).flatten()[element].fill_(value);
    write_all();
  }
  void rename(const std::function<std::string(std::string)>& name) {
    std::map<std::string, at::Tensor> renamed;
    for (const auto& [old, tensor] : tensors_) renamed[name(old)] = tensor;
    tensors_ = renamed;
    write_all();
  }

 private:
  static nlohmann::json llama_config(const std::string& kind) {
    return {{"model_type", kind},       {"hidden_size", 16},       {"num_hidden_layers", 2}, {"num_attention_heads", 4},
            {"num_key_value_heads", 2}, {"intermediate_size", 24}, {"vocab_size", 32},       {"rms_norm_eps", 1e-5}};
  }
  static nlohmann::json gpt2_config() {
    return {{"model_type", "gpt2"}, {"n_embd", 16},     {"n_layer", 2},
            {"n_head", 4},          {"vocab_size", 32}, {"n_inner", nullptr}};
  }

  void add(const std::string& name, const std::vector<int64_t>& sizes) {
    const auto count = c10::multiply_integers(sizes);
    tensors_[name] =
        ((at::arange(count, at::kLong) + next_).remainder(251).to(at::kFloat) / 8).reshape(sizes).to(dtype());
    next_ += count;
  }
  c10::ScalarType dtype() const {
    if (dtype_ == "F32") return at::kFloat;
    return dtype_ == "BF16" ? at::kBFloat16 : dtype_ == "F16" ? at::kHalf : at::kInt;
  }

  void add_llama(bool biases, bool tied) {
    add("model.embed_tokens.weight", {32, 16});
    for (int64_t i = 0; i < 2; ++i) {
      const auto layer = "model.layers." + std::to_string(i) + ".";
      for (const auto& [name, rows] : {std::pair{"q", 16}, {"k", 8}, {"v", 8}}) {
        add(layer + "self_attn." + name + "_proj.weight", {rows, 16});
        if (biases) add(layer + "self_attn." + name + "_proj.bias", {rows});
      }
      add(layer + "self_attn.o_proj.weight", {16, 16});
      add(layer + "input_layernorm.weight", {16});
      add(layer + "post_attention_layernorm.weight", {16});
      add(layer + "mlp.gate_proj.weight", {24, 16});
      add(layer + "mlp.up_proj.weight", {24, 16});
      add(layer + "mlp.down_proj.weight", {16, 24});
    }
    add("model.norm.weight", {16});
    if (!tied) add("lm_head.weight", {32, 16});
  }

  void add_gpt2() {
    add("transformer.wte.weight", {32, 16});
    add("transformer.wpe.weight", {1024, 16});
    const auto add_both = [&](const std::string& name, const std::vector<int64_t>& sizes) {
      add(name + ".weight", sizes);
      add(name + ".bias", {sizes.back()});
    };
    for (int64_t i = 0; i < 2; ++i) {
      const auto layer = "transformer.h." + std::to_string(i) + ".";
      add_both(layer + "ln_1", {16}), add_both(layer + "ln_2", {16});
      add_both(layer + "attn.c_attn", {16, 48}), add_both(layer + "attn.c_proj", {16, 16});
      add_both(layer + "mlp.c_fc", {16, 64}), add_both(layer + "mlp.c_proj", {64, 16});
    }
    add_both("transformer.ln_f", {16});
  }

  void write_all() {
    std::filesystem::remove_all(path());
    std::filesystem::create_directories(path());
    change_config({});
    std::map<std::string, std::string> places;
    const auto name_of = [&](int part) {
      return parts_ == 1 ? std::string("model.safetensors")
                         : fmt::format("model-{:05}-of-{:05}.safetensors", part + 1, parts_);
    };
    for (int part = 0, i = 0; part < parts_; ++part, i = 0) {
      std::vector<trainer::TensorBytes> entries;
      for (const auto& [name, tensor] : tensors_)
        if (i++ % parts_ == part) {
          entries.push_back({name, dtype_, tensor.sizes().vec(), bytes_of(tensor)});
          places[name] = name_of(part);
        }
      trainer::write_safetensors(path() + "/" + name_of(part), entries);
    }
    if (parts_ > 1) write("model.safetensors.index.json", nlohmann::json({{"weight_map", places}}).dump());
  }

  TemporaryFolder folder_;
  nlohmann::json config_;
  std::string dtype_;
  int parts_;
  int64_t next_ = 1;
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace lockstep::testing
