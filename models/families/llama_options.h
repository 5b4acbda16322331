#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::models {

/// Llama 3 (Grattafiori et al., 2024), and what decoders of its kind share: sizes, initial values and names of stored
/// tensors as torchtitan's.
struct LlamaOptions {
  int64_t width = 256, layers = 6, heads = 16, key_value_heads = 16;
  int64_t hidden = 768;  ///< of the feed-forward
  int64_t vocabulary = 2048, length = 2048;
  bool tied_head = false;
  double rope_theta = 500000, rope_factor = 8;
  double norm_epsilon = 1e-5;
  bool attention_bias = false;   ///< of queries, keys and values, as Qwen 2 has
  double dropout = 0;            ///< on both residual branches
  double attention_dropout = 0;  ///< of the weights of attention
  int64_t head_width = 0;        ///< elements of a head; 0: width / heads
  bool query_key_norm = false;   ///< queries and keys are normed over each head before they are rotated, as Qwen 3's
  int64_t unrotated_every = 0;   ///< of every so many layers the last one does not rotate, as Llama 4's; 0: all do
  /// Heads, hidden units and the vocabulary are cut between leaves of canonical sums only (sum_tree.h).
  bool cut_between_leaves = false;

  int64_t head_size() const { return head_width > 0 ? head_width : width / heads; }
  bool rotates(int64_t layer) const { return unrotated_every == 0 || (layer + 1) % unrotated_every != 0; }
};

/// Throws BadInput, naming the job keys, where the sizes do not fit each other.
void require_fitting_sizes(const LlamaOptions& options);

/// "debugmodel", "1B", "3B", "8B", "70B", "405B". Throws BadInput naming the choices.
LlamaOptions llama_flavor(const std::string& name);
std::vector<std::string> llama_flavors();

}  // namespace lockstep::models
