#include "models/families/moe_options.h"

#include "core/error.h"
#include "models/sizes.h"

namespace lockstep::models {
namespace {

LlamaOptions small_dense() {
  LlamaOptions options;
  options.rope_factor = 1;
  return options;
}

MoeOptions small() { return {small_dense(), {}}; }

MoeOptions small_qwen3() {
  auto o = small();
  o.dense.key_value_heads = 8, o.dense.head_width = 32, o.dense.query_key_norm = true, o.dense.rope_theta = 1e6;
  o.experts.count = 16, o.experts.per_token = 4, o.experts.hidden = 128;
  return o;
}

MoeOptions small_deepseek_v3() {
  auto o = small();
  o.dense.hidden = 512, o.dense.rope_theta = 10000, o.dense.norm_epsilon = 1e-6, o.dense_layers = 1;
  o.latent = {64, 64, 16, 16, 16};
  o.experts = {.count = 16, .per_token = 4, .hidden = 128, .shared = 1, .sigmoid_scores = true, .scale = 2.5};
  o.experts.groups = 4, o.experts.groups_per_token = 2, o.experts.balance_rate = 1e-3, o.experts.auxiliary_loss = 1e-4;
  return o;
}

MoeOptions small_llama4() {
  auto o = small();
  o.dense.key_value_heads = 8, o.dense.unrotated_every = 4, o.experts_every = 2;
  o.experts = {.per_token = 1, .shared = 1, .sigmoid_scores = true, .normalized = false, .score_before_experts = true};
  return o;
}

MoeOptions mixtral() {
  auto o = small();
  o.dense = {4096, 32, 32, 8, 14336, 32000, 2048, false, 1e6, 1};
  o.experts.hidden = 14336;
  return o;
}

MoeOptions qwen3(int64_t width, int64_t layers, int64_t heads, int64_t hidden) {
  MoeOptions o{{width, layers, heads, 4, 3 * width, 151936, 2048, false, 1e6, 1, 1e-6}, {}};
  o.dense.head_width = 128, o.dense.query_key_norm = true;
  o.experts = {.count = 128, .per_token = 8, .hidden = hidden};
  return o;
}

MoeOptions deepseek_v3() {
  MoeOptions o{{7168, 61, 128, 128, 18432, 129280, 2048, false, 10000, 1, 1e-6}, {}};
  o.latent = {1536, 512, 128, 64, 128};
  o.dense_layers = 3;
  o.experts = {.count = 256, .per_token = 8, .hidden = 2048, .shared = 1, .sigmoid_scores = true, .scale = 2.5};
  o.experts.groups = 8, o.experts.groups_per_token = 4, o.experts.balance_rate = 1e-3, o.experts.auxiliary_loss = 1e-4;
  return o;
}

MoeOptions llama4(int64_t experts, int64_t every) {
  MoeOptions o{{5120, 48, 40, 8, 16384, 202048, 2048, false, 500000, 8}, {}};
  o.dense.unrotated_every = 4, o.experts_every = every;
  o.experts = {.count = experts, .per_token = 1, .hidden = 8192, .shared = 1, .sigmoid_scores = true};
  o.experts.normalized = false, o.experts.score_before_experts = true;
  return o;
}

const std::vector<Flavor<MoeOptions>>& flavors() {
  static const std::vector<Flavor<MoeOptions>> all{
      {"debugmodel", small()},
      {"debugmodel-qwen3", small_qwen3()},
      {"debugmodel-deepseek-v3", small_deepseek_v3()},
      {"debugmodel-llama4", small_llama4()},
      {"mixtral-8x7B", mixtral()},
      {"qwen3-30B-A3B", qwen3(2048, 48, 32, 768)},
      {"qwen3-235B-A22B", qwen3(4096, 94, 64, 1536)},
      {"deepseek-v3-671B", deepseek_v3()},
      {"llama4-17Bx16E", llama4(16, 1)},
      {"llama4-17Bx128E", llama4(128, 2)},
  };
  return all;
}

void require_fitting_groups(const ExpertOptions& e) {
  require_multiple("experts.count", e.count, "experts.groups", e.groups);
  if (e.groups_per_token > e.groups)
    fail<BadInput>("model.experts.groups_per_token {} is more than the {} groups of model.experts.groups.",
                   e.groups_per_token, e.groups);
  if (e.per_token > e.groups_per_token * (e.count / e.groups))
    fail<BadInput>(
        "model.experts.per_token {} is more than the {} experts that a token can choose among (model.experts.count {} "
        "in {} groups, {} of them for a token).",
        e.per_token, e.groups_per_token * (e.count / e.groups), e.count, e.groups, e.groups_per_token);
}

}  // namespace

void require_fitting_sizes(const MoeOptions& o) {
  auto attention = o.dense;
  if (!o.has_dense_layers()) attention.hidden = attention.key_value_heads;  // nobody reads it
  if (!o.latent.enabled()) require_fitting_sizes(attention);
  require_fitting_groups(o.experts);
  if (o.experts.shared > 0)
    require_multiple("experts.hidden", o.experts.shared * o.experts.hidden, "key_value_heads", o.dense.key_value_heads);
  require_multiple("hidden", attention.hidden, "key_value_heads", o.dense.key_value_heads);
  if (o.latent.enabled() && o.latent.rotated_size % 2 != 0)
    fail<BadInput>("model.latent_attention.rotated_size {} must be even: rotations turn pairs.", o.latent.rotated_size);
  if (o.latent.enabled() && o.dense.heads != o.dense.key_value_heads)
    fail<BadInput>(
        "model.key_value_heads {} beside model.heads {}: latent attention (model.latent_attention) has as many heads "
        "of "
        "keys as of queries.",
        o.dense.key_value_heads, o.dense.heads);
}

MoeOptions moe_flavor(const std::string& name) { return flavor_of<MoeOptions>("moe", flavors(), name); }

std::vector<std::string> moe_flavors() { return names_of<MoeOptions>(flavors()); }

}  // namespace lockstep::models
