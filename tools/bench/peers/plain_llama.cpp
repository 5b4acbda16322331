#include "tools/bench/peers/plain_llama.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "models/rope.h"

namespace lockstep::bench {
namespace {

using at::Tensor;

constexpr int64_t kWidth = 256, kLayers = 6, kHeads = 16, kHeadSize = kWidth / kHeads, kHidden = 768;
constexpr int64_t kVocabulary = 2048;

Tensor rms_norm(const Tensor& x, const Tensor& weight) { return at::rms_norm(x, {kWidth}, weight, 1e-5); }

Tensor complex_rotations(int64_t length) {
  const auto tables = models::rope_tables({kHeadSize, 500000, 8}, length);
  return at::complex(tables.cosines, tables.sines).unsqueeze(1);
}

}  // namespace

PlainLlama::PlainLlama(int64_t length)
    : rotations_(complex_rotations(length)), embedding_(parameter({kVocabulary, kWidth}, 1)) {
  for (int64_t layer = 0; layer < kLayers; ++layer)
    blocks_.push_back({norm(), weight(3 * kWidth, kWidth), weight(kWidth, kWidth), norm(), weight(2 * kHidden, kWidth),
                       weight(kWidth, kHidden)});
  last_norm_ = norm();
  output_ = weight(kVocabulary, kWidth);
}

Tensor PlainLlama::parameter(c10::IntArrayRef sizes, double deviation, double mean) {
  auto value = at::randn(sizes) * deviation + mean;
  state_.values.push_back(value.requires_grad_());
  state_.means.push_back(at::zeros(sizes));
  state_.squares.push_back(at::zeros(sizes));
  state_.steps.push_back(at::zeros({}));
  return value;
}

int64_t PlainLlama::parameter_count() const {
  int64_t count = 0;
  for (const auto& value : state_.values) count += value.numel();
  return count;
}

Tensor PlainLlama::rotate(const Tensor& x) const {
  const auto pairs = at::view_as_complex(x.unflatten(-1, {kHeadSize / 2, 2}));
  return at::view_as_real(pairs * rotations_).flatten(3);
}

Tensor PlainLlama::attention(const Block& block, const Tensor& x) const {
  const int64_t batch = x.size(0), length = x.size(1);
  const auto qkv = at::linear(x, block.qkv).view({batch, length, 3, kHeads, kHeadSize}).unbind(2);
  const auto mixed =
      at::scaled_dot_product_attention(rotate(qkv[0]).transpose(1, 2), rotate(qkv[1]).transpose(1, 2),
                                       qkv[2].transpose(1, 2), /*attn_mask=*/{}, /*dropout_p=*/0, /*is_causal=*/true);
  return at::linear(mixed.transpose(1, 2).reshape({batch, length, kWidth}), block.out);
}

Tensor PlainLlama::feed_forward(const Block& block, const Tensor& x) const {
  const auto both = at::linear(x, block.gate_up).chunk(2, -1);
  return at::linear(at::silu(both[0]) * both[1], block.down);
}

Tensor PlainLlama::forward(const Tensor& tokens) const {
  auto x = at::embedding(embedding_, tokens);
  for (const auto& block : blocks_) {
    x = x + attention(block, rms_norm(x, block.attention_norm));
    x = x + feed_forward(block, rms_norm(x, block.feed_forward_norm));
  }
  return at::linear(rms_norm(x, last_norm_), output_);
}

double PlainLlama::step(const Tensor& tokens, const Tensor& labels, double learning_rate) {
  const auto loss = at::cross_entropy_loss(forward(tokens).view({-1, kVocabulary}), labels.view({-1}));
  loss.backward();
  clip_and_update(learning_rate);
  return loss.item<double>();
}

std::vector<Tensor> PlainLlama::State::gradients() const {
  std::vector<Tensor> all;
  for (const auto& value : values) all.push_back(value.grad());
  return all;
}

void PlainLlama::clip_and_update(double learning_rate) {
  const at::NoGradGuard no_grad;
  const auto gradients = state_.gradients();
  const auto norms = at::_foreach_norm(gradients, 2);
  const auto factor = (1 / (at::linalg_vector_norm(at::stack(norms)) + 1e-6)).clamp_max(1);
  at::_foreach_mul_(gradients, factor);
  at::_foreach_add_(state_.steps, 1);
  at::_fused_adamw_(state_.values, gradients, state_.means, state_.squares, {}, state_.steps, learning_rate, 0.9, 0.95,
                    /*weight_decay=*/0.1, 1e-8, /*amsgrad=*/false, /*maximize=*/false);
  for (auto& value : state_.values) value.mutable_grad() = Tensor();
}

}  // namespace lockstep::bench
