#pragma once
#include <memory>
#include <string>

#include "models/families/llama_layers.h"
#include "models/families/moe_options.h"

namespace lockstep::models {

/// Multi-head latent attention (DeepSeek-V2, 2024, section 2.1), as it is trained: keys and values of all heads are
/// there. Names as torchtitan's.
class LatentAttention : public Module {
 public:
  LatentAttention(Module& owner, std::string name, const LlamaOptions& options, const LatentOptions& latent,
                  int64_t layer);
  /// x [batch, length, width]; places: of rotated_size elements.
  at::Tensor forward(const at::Tensor& x, const Places& places);

 private:
  at::Tensor queries(const at::Tensor& x);

  LlamaOptions options_;
  LatentOptions latent_;
  std::unique_ptr<Linear> query_, query_down_, query_up_;
  std::unique_ptr<RmsNorm> query_norm_;
  Linear key_value_down_;
  RmsNorm key_value_norm_;
  Linear key_value_up_, out_;
};

}  // namespace lockstep::models
