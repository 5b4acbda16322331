#include "trainer/weights/hugging_face/names.h"

#include <fmt/format.h>

#include <string_view>

namespace lockstep::trainer {
namespace {

void add_llama_layer(const ModelSection& model, int64_t layer, std::vector<ForeignTensor>& all) {
  const auto ours = fmt::format("layers.{}.", layer), theirs = fmt::format("model.layers.{}.", layer);
  const int64_t head_size = *model.width / *model.heads;
  const auto add = [&](const char* name, const char* part, const char* kind, int64_t rotary = 0) {
    all.push_back({theirs + name + kind, {ours + part + kind}, rotary});
  };
  add("input_layernorm", "attention_norm", ".weight");
  for (const char* kind : {".weight", ".bias"}) {
    if (kind == std::string_view(".bias") && !*model.attention_bias) continue;
    add("self_attn.q_proj", "attention.wq", kind, head_size);
    add("self_attn.k_proj", "attention.wk", kind, head_size);
    add("self_attn.v_proj", "attention.wv", kind);
  }
  add("self_attn.o_proj", "attention.wo", ".weight");
  add("post_attention_layernorm", "ffn_norm", ".weight");
  add("mlp.gate_proj", "feed_forward.w1", ".weight");
  add("mlp.up_proj", "feed_forward.w3", ".weight");
  add("mlp.down_proj", "feed_forward.w2", ".weight");
}

std::vector<ForeignTensor> llama_tensors(const ModelSection& model) {
  std::vector<ForeignTensor> all{{"model.embed_tokens.weight", {"tok_embeddings.weight"}}};
  for (int64_t layer = 0; layer < *model.layers; ++layer) add_llama_layer(model, layer, all);
  all.push_back({"model.norm.weight", {"norm.weight"}});
  if (!*model.tied_head) all.push_back({"lm_head.weight", {"output.weight"}});
  return all;
}

void add_gpt2_layer(int64_t layer, std::vector<ForeignTensor>& all) {
  const auto ours = fmt::format("layers.{}.", layer), theirs = fmt::format("transformer.h.{}.", layer);
  const auto add_norm = [&](const char* name, const char* part) {
    for (const char* kind : {".weight", ".bias"}) all.push_back({theirs + name + kind, {ours + part + kind}});
  };
  const auto add_linear = [&](const char* name, std::vector<std::string> parts) {
    for (const char* kind : {".weight", ".bias"}) {
      ForeignTensor tensor{theirs + name + kind, {}, 0, kind == std::string_view(".weight")};
      for (const auto& part : parts) tensor.parts.push_back(ours + part + kind);
      all.push_back(std::move(tensor));
    }
  };
  add_norm("ln_1", "attention_norm");
  add_linear("attn.c_attn", {"attention.wq", "attention.wk", "attention.wv"});
  add_linear("attn.c_proj", {"attention.wo"});
  add_norm("ln_2", "ffn_norm");
  add_linear("mlp.c_fc", {"feed_forward.w1"});
  add_linear("mlp.c_proj", {"feed_forward.w2"});
}

std::vector<ForeignTensor> gpt2_tensors(const ModelSection& model) {
  std::vector<ForeignTensor> all{{"transformer.wte.weight", {"tok_embeddings.weight"}},
                                 {"transformer.wpe.weight", {"pos_embeddings.weight"}}};
  for (int64_t layer = 0; layer < *model.layers; ++layer) add_gpt2_layer(layer, all);
  all.push_back({"transformer.ln_f.weight", {"norm.weight"}});
  all.push_back({"transformer.ln_f.bias", {"norm.bias"}});
  return all;
}

}  // namespace

std::vector<ForeignTensor> hugging_face_tensors(const ModelSection& model) {
  return model.name == "gpt2" ? gpt2_tensors(model) : llama_tensors(model);
}

bool holds_no_weight(const ModelSection& model, const std::string& foreign_name) {
  if (model.name == "llama3") return foreign_name.ends_with(".rotary_emb.inv_freq");
  return foreign_name.ends_with(".attn.bias") || foreign_name.ends_with(".attn.masked_bias");
}

}  // namespace lockstep::trainer
