#pragma once
#include <string>

#include "models/families/decoder.h"

namespace lockstep::models {

class TransformerBlock : public DecoderBlock {
 public:
  TransformerBlock(Module& owner, std::string name, const LlamaOptions& options, int64_t layer);
  at::Tensor forward(const at::Tensor& x, const Places& places) override;

 private:
  double dropout_;
  RmsNorm attention_norm_, feed_forward_norm_;
  Attention attention_;
  FeedForward feed_forward_;
};

class Llama : public Decoder {
 public:
  explicit Llama(const LlamaOptions& options);
  std::string sizes_text() const override;
  double operations_per_token(int64_t length) const override;

 private:
  LlamaOptions options_;
};

}  // namespace lockstep::models
