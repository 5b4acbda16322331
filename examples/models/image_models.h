#pragma once
#include "attention_models.h"

/// Models of images as one writes them for one device.
namespace examples {

constexpr int64_t kPatches = 9, kClasses = 10, kChannels = 8;

/// Mixes patches, then channels (Tolstikhin et al. 2021, MLP-Mixer, section 2). Images are [batch, patches, width].
struct MixerImpl : torch::nn::Module {
  MixerImpl() {
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
using Mixer = MixerImpl;

/// Two convolutions with batch norms around which the input goes (He et al. 2015, Deep residual learning, figure 2).
struct ResidualImpl : torch::nn::Module {
  ResidualImpl() {
    const auto convolution = [] {
      return torch::nn::Conv2d(torch::nn::Conv2dOptions(kChannels, kChannels, 3).padding(1).bias(false));
    };
    up = register_module("up", convolution());
    inner_norm = register_module("inner_norm", torch::nn::BatchNorm2d(kChannels));
    down = register_module("down", convolution());
    outer_norm = register_module("outer_norm", torch::nn::BatchNorm2d(kChannels));
  }
  at::Tensor forward(const at::Tensor& x) { return at::relu(x + outer_norm(down(at::relu(inner_norm(up(x)))))); }

  torch::nn::Conv2d up{nullptr}, down{nullptr};
  torch::nn::BatchNorm2d inner_norm{nullptr}, outer_norm{nullptr};
};
TORCH_MODULE(Residual);

/// Images are [batch, 3, height, width].
struct ResNet : torch::nn::Module {
  ResNet() {
    stem = register_module("stem", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, kChannels, 3).padding(1)));
    blocks = register_module("blocks", torch::nn::ModuleList(Residual(), Residual()));
    head = register_module("head", torch::nn::Linear(kChannels, kClasses));
  }
  at::Tensor loss(const at::Tensor& images, const at::Tensor& classes) {
    auto x = at::max_pool2d(at::relu(stem(images)), 2);
    for (const auto& block : *blocks) x = block->as<Residual>()->forward(x);
    return at::cross_entropy_loss(head(x.mean({2, 3})), classes);
  }

  torch::nn::Conv2d stem{nullptr};
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::Linear head{nullptr};
};

}  // namespace examples
