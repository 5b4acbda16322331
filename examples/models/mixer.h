#pragma once
#include "attention_models.h"

namespace examples {

constexpr int64_t kPatches = 9, kClasses = 10;

/// Mixes patches, then channels (Tolstikhin et al. 2021, MLP-Mixer, section 2). Images are [batch, patches, width].
struct Mixer : torch::nn::Module {
  Mixer() {
    patch_norm = register_module("patch_norm", norm());
    patches = register_module("patches", FeedForward(kPatches, 2 * kPatches));
    channel_norm = register_module("channel_norm", norm());
    channels = register_module("channels", FeedForward(kWidth, 2 * kWidth));
    head = register_module("head", torch::nn::Linear(kWidth, kClasses));
  }
  at::Tensor loss(at::Tensor x, const at::Tensor& classes) {
    x = x + patches(patch_norm(x).transpose(1, 2)).transpose(1, 2);
    x = x + channels(channel_norm(x));
    return at::cross_entropy_loss(head(x.mean(1)), classes);
  }

  torch::nn::LayerNorm patch_norm{nullptr}, channel_norm{nullptr};
  FeedForward patches{nullptr}, channels{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace examples
