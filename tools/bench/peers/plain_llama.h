#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::bench {

/// The peer of `lockstep bench step`: Llama 3 debugmodel (models/families/llama.h: width 256, 6 layers, 16 heads,
/// hidden 768, vocabulary 2048) as one would write it in plain LibTorch C++ for one CPU, fp32. It shares no code with
/// models/, trainer/ or runtime/ but the table of rotations.
///
/// Where LibTorch offers several ways the fastest was taken: rotation of pairs as a complex product, the optimizer as
/// at::_fused_adamw_ (torch::optim::AdamW takes three times as long), clipping with at::_foreach_norm.
class PlainLlama {
 public:
  explicit PlainLlama(int64_t length);

  /// Forward, backward, clipping to norm 1, AdamW (betas 0.9 and 0.95, decay 0.1). Tokens and labels [batch,
  /// length]; returns the mean loss.
  double step(const at::Tensor& tokens, const at::Tensor& labels, double learning_rate);

  int64_t parameter_count() const;

 private:
  struct Block {
    at::Tensor attention_norm, qkv, out, feed_forward_norm, gate_up, down;
  };
  /// All parameters, with their optimizer state.
  struct State {
    std::vector<at::Tensor> values = {}, means = {}, squares = {}, steps = {};
    std::vector<at::Tensor> gradients() const;
  };

  at::Tensor parameter(c10::IntArrayRef sizes, double deviation, double mean = 0);
  at::Tensor weight(int64_t out, int64_t in) { return parameter({out, in}, 0.02); }
  at::Tensor norm() { return parameter({256}, 0, 1); }
  at::Tensor forward(const at::Tensor& tokens) const;
  at::Tensor attention(const Block& block, const at::Tensor& x) const;
  at::Tensor feed_forward(const Block& block, const at::Tensor& x) const;
  at::Tensor rotate(const at::Tensor& x) const;
  void clip_and_update(double learning_rate);

  State state_;
  at::Tensor rotations_;  ///< complex [length, 1, pairs]
  at::Tensor embedding_;
  std::vector<Block> blocks_;
  at::Tensor last_norm_, output_;
};

}  // namespace lockstep::bench
