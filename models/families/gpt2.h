#pragma once
#include <memory>
#include <string>
#include <vector>

#include "models/documents.h"
#include "models/layers.h"

namespace lockstep::models {

/// GPT-2 (Radford et al., 2019) with its published sizes. Its dropout falls on the embeddings and on both residual
/// branches. GPT-2 drops a tenth of attention's weights, too; here they are kept unless a job asks for it
/// (`attention_dropout`).
struct Gpt2Options {
  int64_t width = 128, layers = 2, heads = 4;
  int64_t hidden = 512;  ///< of the feed-forward
  int64_t vocabulary = 256;
  int64_t positions = 1024;  ///< tokens of the longest sequence
  double dropout = 0.1;
  double attention_dropout = 0;
  /// Heads, hidden units and the vocabulary are cut between leaves of canonical sums only (sum_tree.h).
  bool cut_between_leaves = false;

  int64_t head_size() const { return width / heads; }
};

/// Throws BadInput, naming the job keys, where the sizes do not fit each other.
void require_fitting_sizes(const Gpt2Options& options);

/// "debugmodel", "124M", "355M", "774M", "1.5B". Throws BadInput naming the choices.
Gpt2Options gpt2_flavor(const std::string& name);

/// What a token is and where it stands, both learned.
class Gpt2Embeddings : public Module {
 public:
  Gpt2Embeddings(Module& owner, std::string name, const Gpt2Options& options);
  /// tokens and positions [batch, length].
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& positions);
  const Embedding& tokens() const { return tokens_; }

 private:
  double dropout_;
  Embedding tokens_, positions_;
};

/// One fused weight and bias for query, key and value: for each head its query, its key, its value.
class Gpt2Attention : public Module {
 public:
  Gpt2Attention(Module& owner, std::string name, const Gpt2Options& options);
  /// x [batch, length, width].
  at::Tensor forward(const at::Tensor& x, const Documents& documents);

 private:
  int64_t heads_;
  double attention_dropout_;
  Linear qkv_, out_;
};

/// GELU in its form by tanh.
class Gpt2FeedForward : public Module {
 public:
  Gpt2FeedForward(Module& owner, std::string name, const Gpt2Options& options);
  at::Tensor forward(const at::Tensor& x);

 private:
  Linear up_, down_;
};

class Gpt2Block : public Module {
 public:
  Gpt2Block(Module& owner, std::string name, const Gpt2Options& options);
  at::Tensor forward(const at::Tensor& x, const Documents& documents);

 private:
  double dropout_;
  LayerNorm attention_norm_, feed_forward_norm_;
  Gpt2Attention attention_;
  Gpt2FeedForward feed_forward_;
};

/// The final norm and the projection to the vocabulary by the tokens' table.
class Gpt2Head : public Module {
 public:
  Gpt2Head(Module& owner, std::string name, const Gpt2Options& options, const Embedding& tokens);
  at::Tensor forward(const at::Tensor& x);

 private:
  LayerNorm norm_;
  const Embedding& tokens_;
};

class Gpt2 : public Model {
 public:
  explicit Gpt2(const Gpt2Options& options);
  int64_t vocabulary() const override { return options_.vocabulary; }
  int64_t width() const override { return options_.width; }
  std::string sizes_text() const override;
  double operations_per_token(int64_t length) const override;
  std::vector<Module*> blocks() override;
  std::vector<BlockCall> block_calls(at::IntArrayRef tokens) override;

 private:
  Gpt2Options options_;
  at::Tensor positions_;  ///< 0, 1, ...
  Gpt2Embeddings embeddings_;
  std::vector<std::unique_ptr<Gpt2Block>> layers_;
  Gpt2Head head_;
};

}  // namespace lockstep::models
