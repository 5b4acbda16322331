#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/documents.h"
#include "models/layers.h"
#include "models/rope.h"

namespace lockstep::models {

/// Llama 3 (Grattafiori et al., 2024): sizes, initial values and names of stored tensors as torchtitan's.
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
  /// Heads, hidden units and the vocabulary are cut between leaves of canonical sums only (sum_tree.h).
  bool cut_between_leaves = false;

  int64_t head_size() const { return width / heads; }
};

/// Throws BadInput, naming the job keys, where the sizes do not fit each other.
void require_fitting_sizes(const LlamaOptions& options);

/// "debugmodel", "1B", "3B", "8B", "70B", "405B". Throws BadInput naming the choices.
LlamaOptions llama_flavor(const std::string& name);
std::vector<std::string> llama_flavors();

/// Where a sequence's tokens stand: rows of the rotations, [length, head_size / 2], or of packed samples
/// [batch, length, head_size / 2].
struct Places {
  at::Tensor cosines, sines;
  Documents documents;
};

/// One fused weight for query, key and value: rows ordered by head group, each the group's queries, its key, its value.
class Attention : public Module {
 public:
  Attention(Module& owner, std::string name, const LlamaOptions& options, int64_t layer);
  /// x [batch, length, width].
  at::Tensor forward(const at::Tensor& x, const Places& places);

 private:
  at::Tensor rotated(const at::Tensor& x, const Places& places) const;

  LlamaOptions options_;
  Linear qkv_, out_;
};

/// SwiGLU (Shazeer, 2020) with one fused weight: for each head group, its rows of the gate, then its rows of up.
class FeedForward : public Module {
 public:
  FeedForward(Module& owner, std::string name, const LlamaOptions& options, int64_t layer);
  at::Tensor forward(const at::Tensor& x);

 private:
  int64_t groups_, group_rows_;
  Linear gate_up_, down_;
};

class TransformerBlock : public Module {
 public:
  TransformerBlock(Module& owner, std::string name, const LlamaOptions& options, int64_t layer);
  at::Tensor forward(const at::Tensor& x, const Places& places);

 private:
  double dropout_;
  RmsNorm attention_norm_, feed_forward_norm_;
  Attention attention_;
  FeedForward feed_forward_;
};

/// The final norm and the projection to the vocabulary; a tied head uses the embedding's weight.
class Head : public Module {
 public:
  Head(Module& owner, std::string name, const LlamaOptions& options, const Embedding& embedding);
  at::Tensor forward(const at::Tensor& x);
  std::vector<const Parameter*> shared() const;  ///< BlockCall::shared

 private:
  RmsNorm norm_;
  std::unique_ptr<Linear> output_;
  const Embedding& embedding_;
};

class Llama : public Model {
 public:
  explicit Llama(const LlamaOptions& options);
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t width() const override { return options_.width; }
  std::string sizes_text() const override;
  double operations_per_token(int64_t length) const override;
  std::vector<Module*> blocks() override;
  std::vector<BlockCall> block_calls(at::IntArrayRef tokens) override;

 private:
  Places places(int64_t length) const;

  LlamaOptions options_;
  RopeTables tables_;
  Embedding embedding_;
  std::vector<std::unique_ptr<TransformerBlock>> layers_;
  Head head_;
};

}  // namespace lockstep::models
