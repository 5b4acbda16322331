#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/families/llama_options.h"

namespace lockstep::models {

/// Experts in the place of a feed-forward, and how a router chooses among them.
struct ExpertOptions {
  int64_t count = 8, per_token = 2;
  int64_t hidden = 256;         ///< of each expert's feed-forward
  int64_t shared = 0;           ///< experts that every token has besides, as one feed-forward of so many times hidden
  bool sigmoid_scores = false;  ///< scores are each logit's sigmoid; or the softmax over all
  bool normalized = true;       ///< the weights of a token's choices are divided by their sum
  double scale = 1;             ///< times which they are then
  bool score_before_experts = false;  ///< they multiply what experts take, as Llama 4's; or what they give
  int64_t groups = 1;                 ///< of experts, equal runs of them; a token chooses among those of
  int64_t groups_per_token = 1;  ///< so many, whose two best scores have the largest sums (DeepSeek-V3, 2024, 2.1.2)
  double capacity_factor = 0;    ///< at most this times length x per_token / count tokens of a sequence; 0: all
  double balance_rate = 0;       ///< of the biases that balance the load (Wang et al., 2024); 0: there are none
  double auxiliary_loss = 0;     ///< weight of each sequence's loss of balance (DeepSeek-V3, 2024, eq. 17 to 20)
};

/// Multi-head latent attention (DeepSeek-V2, 2024, 2.1): queries, and keys and values, come from vectors of few
/// elements.
struct LatentOptions {
  int64_t query_rank = 0;      ///< 0: queries come from the embedding
  int64_t key_value_rank = 0;  ///< 0: attention is Llama's
  int64_t plain_size = 128;    ///< elements of a query or key that are not rotated
  int64_t rotated_size = 64;   ///< and that are; keys of all heads share them
  int64_t value_size = 128;

  bool enabled() const { return key_value_rank > 0; }
  int64_t head_size() const { return plain_size + rotated_size; }
};

/// A decoder of Llama's kind with mixtures of experts.
struct MoeOptions {
  LlamaOptions dense;  ///< the feed-forward is that of layers without experts
  ExpertOptions experts;
  LatentOptions latent = {};
  int64_t dense_layers = 0;   ///< the first ones, without experts
  int64_t experts_every = 1;  ///< of every so many layers the last one has experts

  bool has_dense_layers() const { return dense_layers > 0 || experts_every > 1; }
  bool has_experts(int64_t layer) const { return layer >= dense_layers && (layer + 1) % experts_every == 0; }
};

/// Throws BadInput, naming the job keys, where the sizes do not fit each other.
void require_fitting_sizes(const MoeOptions& options);

/// Small ones of each kind, and published ones: Mixtral (Jiang et al., 2024), Qwen 3 (2025), DeepSeek-V3 (2024), Llama
/// 4 (2025). Throws BadInput naming the choices.
MoeOptions moe_flavor(const std::string& name);
std::vector<std::string> moe_flavors();

}  // namespace lockstep::models
