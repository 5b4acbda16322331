#pragma once
#include <memory>
#include <string>

#include "models/families/decoder.h"
#include "models/families/experts.h"
#include "models/families/latent_attention.h"

namespace lockstep::models {

/// Attention or latent attention, and a feed-forward or experts.
class MoeBlock : public DecoderBlock {
 public:
  MoeBlock(Module& owner, std::string name, const MoeOptions& options, int64_t layer);
  at::Tensor forward(const at::Tensor& x, const Places& places) override;

 private:
  at::Tensor attended(const at::Tensor& x, const Places& places);

  double dropout_;
  RmsNorm attention_norm_, feed_forward_norm_;
  std::unique_ptr<Attention> attention_;
  std::unique_ptr<LatentAttention> latent_attention_;
  std::unique_ptr<FeedForward> feed_forward_;
  std::unique_ptr<MixtureOfExperts> experts_;
};

/// A decoder with mixtures of experts in the place of its feed-forwards, or of some of them.
class Moe : public Decoder {
 public:
  explicit Moe(const MoeOptions& options);
  std::string sizes_text() const override;
  /// Of experts those that a token chooses.
  double operations_per_token(int64_t length) const override;

 private:
  MoeOptions options_;
};

}  // namespace lockstep::models
