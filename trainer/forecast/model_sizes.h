#pragma once
#include <cstdint>
#include <string>

#include "models/families/llama_options.h"
#include "models/families/moe_options.h"

namespace lockstep::trainer::forecast {

/// Of a layer's attention; elements are those of one token, of all heads.
struct AttentionSizes {
  int64_t key_value_heads = 0;
  int64_t parameters = 0;       ///< of its maps, and of norms inside of it
  int64_t out_parameters = 0;   ///< of them those of the map to the embedding
  int64_t projected = 0;        ///< elements that its other maps give
  int64_t scored = 0;           ///< elements of queries and keys, as scores are made of them
  int64_t given = 0;            ///< elements that the map to the embedding takes
  int64_t keys_and_values = 0;  ///< elements that ranks of cp have of each other's tokens
  int64_t products = 0;         ///< multiplications with each key: for its score, and for its value
};

/// Experts that tokens choose.
struct ExpertSizes {
  int64_t layers = 0;  ///< that have them; 0: there are none
  int64_t every = 1;   ///< of every so many layers at most one has them
  int64_t count = 0, per_token = 0;
  int64_t hidden = 0;         ///< of each
  bool has_biases = false;    ///< that balance the load
  int64_t shared_hidden = 0;  ///< of what all tokens take besides
};

/// A decoder of Llama's kind, as forecasts see it.
struct ModelSizes {
  int64_t layers = 0, width = 0, vocabulary = 0;
  int64_t hidden = 0;  ///< of the feed-forward of layers without experts
  bool tied_head = false;
  AttentionSizes attention;
  ExpertSizes experts = {};

  bool has_experts() const { return experts.layers > 0; }
  /// The table, or what gives logits.
  double table_parameters() const { return static_cast<double>(vocabulary * width); }
  /// Parameters outside of layers.
  double outer_parameters() const { return (tied_head ? 1 : 2) * table_parameters() + static_cast<double>(width); }
  double parameters() const;
  /// Operations per token, as Model::operations_per_token() counts them.
  double operations_per_token(int64_t seq_len) const;
};

ModelSizes sizes_of(const models::LlamaOptions& options);
ModelSizes sizes_of(const models::MoeOptions& options);

/// One layer of a kind: parameters, and elements of a token.
struct LayerSizes {
  double everywhere = 0;      ///< parameters that all tokens meet
  double routed = 0;          ///< those of all experts that tokens choose
  double chosen = 0;          ///< of them those that one token meets
  double out_parameters = 0;  ///< of what a token meets: of maps to the embedding
  double hidden = 0;          ///< elements inside of all feed-forwards that a token takes
  double rows = 0;            ///< experts that it chooses

  double parameters() const { return everywhere + routed; }
  double met() const { return everywhere + chosen; }
};

LayerSizes dense_layer(const ModelSizes& model);
/// REQUIRES: has_experts().
LayerSizes expert_layer(const ModelSizes& model);
/// One with experts, if there are any.
inline LayerSizes largest_layer(const ModelSizes& model) {
  return model.has_experts() ? expert_layer(model) : dense_layer(model);
}

}  // namespace lockstep::trainer::forecast
