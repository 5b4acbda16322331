#include "trainer/weights/hugging_face/names.h"

#include <fmt/format.h>

#include <string_view>

#include "trainer/weights/hugging_face/expert_config.h"
#include "trainer/weights/model_sizes.h"

namespace lockstep::trainer {
namespace {

/// Of a decoder's layer.
struct Layer {
  std::string ours, theirs;
  std::vector<ForeignTensor>& all;

  Layer(int64_t number, std::vector<ForeignTensor>& tensors)
      : ours(fmt::format("layers.{}.", number)), theirs(fmt::format("model.layers.{}.", number)), all(tensors) {}

  void add(const std::string& name, const std::string& part, const char* kind = ".weight", int64_t rotary = 0) const {
    all.push_back({theirs + name + kind, {ours + part + kind}, rotary});
  }
  /// Names of theirs for the gate, down and up.
  void add_feed_forward(const std::string& name, const std::string& part) const {
    add(name + ".gate_proj", part + ".w1");
    add(name + ".up_proj", part + ".w3");
    add(name + ".down_proj", part + ".w2");
  }
};

int64_t head_size_of(const ModelSection& model) {
  const auto given = model.head_width.value_or(0);
  return given > 0 ? given : *model.width / *model.heads;
}

void add_attention(const ModelSection& model, const Layer& layer) {
  const int64_t head_size = head_size_of(model);
  for (const char* kind : {".weight", ".bias"}) {
    if (kind == std::string_view(".bias") && !*model.attention_bias) continue;
    layer.add("self_attn.q_proj", "attention.wq", kind, head_size);
    layer.add("self_attn.k_proj", "attention.wk", kind, head_size);
    layer.add("self_attn.v_proj", "attention.wv", kind);
  }
  layer.add("self_attn.o_proj", "attention.wo");
  if (!model.query_key_norm.value_or(false)) return;
  layer.add("self_attn.q_norm", "attention.q_norm", ".weight", head_size);
  layer.add("self_attn.k_norm", "attention.k_norm", ".weight", head_size);
}

void add_latent_attention(const ModelSection& model, const Layer& layer) {
  if (*model.latent_attention.query_rank == 0) layer.add("self_attn.q_proj", "attention.wq");
  for (const auto& [name, part] : {std::pair{"q_a_proj", "wq_a"}, {"q_a_layernorm", "q_norm"}, {"q_b_proj", "wq_b"}})
    if (*model.latent_attention.query_rank > 0)
      layer.add(fmt::format("self_attn.{}", name), fmt::format("attention.{}", part));
  layer.add("self_attn.kv_a_proj_with_mqa", "attention.wkv_a");
  layer.add("self_attn.kv_a_layernorm", "attention.kv_norm");
  layer.add("self_attn.kv_b_proj", "attention.wkv_b");
  layer.add("self_attn.o_proj", "attention.wo");
}

void add_experts(const ModelSection& model, const Layer& layer) {
  const bool is_mixtral = expert_kind(model) == "mixtral";
  const std::string block = is_mixtral ? "block_sparse_moe." : "mlp.";
  layer.add(block + "gate", "moe.router.gate");
  const std::pair<const char*, const char*> names[] = {{"w1", is_mixtral ? "w1" : "gate_proj"},
                                                       {"w3", is_mixtral ? "w3" : "up_proj"},
                                                       {"w2", is_mixtral ? "w2" : "down_proj"}};
  for (int64_t expert = 0; expert < *model.experts.count; ++expert)
    for (const auto& [part, name] : names)
      layer.all.push_back({.name = fmt::format("{}{}experts.{}.{}.weight", layer.theirs, block, expert, name),
                           .parts = {layer.ours + "moe.experts." + part},
                           .expert = expert});
  if (*model.experts.shared > 0) layer.add_feed_forward("mlp.shared_experts", "moe.shared_experts");
  if (*model.experts.balance_rate > 0)
    layer.all.push_back({.name = layer.theirs + "mlp.gate.e_score_correction_bias",
                         .parts = {layer.ours + "moe.expert_bias"},
                         .in_float32 = true});
}

void add_layer(const ModelSection& model, int64_t number, std::vector<ForeignTensor>& all) {
  const Layer layer(number, all);
  const bool is_moe = model.name == "moe";
  layer.add("input_layernorm", "attention_norm");
  if (is_moe && *model.latent_attention.key_value_rank > 0)
    add_latent_attention(model, layer);
  else
    add_attention(model, layer);
  layer.add("post_attention_layernorm", "ffn_norm");
  if (is_moe && moe_options(model).has_experts(number))
    add_experts(model, layer);
  else
    layer.add_feed_forward("mlp", "feed_forward");
}

std::vector<ForeignTensor> decoder_tensors(const ModelSection& model) {
  std::vector<ForeignTensor> all{{"model.embed_tokens.weight", {"tok_embeddings.weight"}}};
  for (int64_t layer = 0; layer < *model.layers; ++layer) add_layer(model, layer, all);
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
  return model.name == "gpt2" ? gpt2_tensors(model) : decoder_tensors(model);
}

bool holds_no_weight(const ModelSection& model, const std::string& foreign_name) {
  const bool is_behind = model.name == "moe" &&
                         foreign_name.starts_with(fmt::format("model.layers.{}.", *model.layers)) &&
                         *model.latent_attention.key_value_rank > 0;
  if (model.name != "gpt2") return is_behind || foreign_name.ends_with(".rotary_emb.inv_freq");
  return foreign_name.ends_with(".attn.bias") || foreign_name.ends_with(".attn.masked_bias");
}

}  // namespace lockstep::trainer
