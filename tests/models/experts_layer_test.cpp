// Experts and latent attention against formulas of LibTorch's ops alone, forward and backward: every expert on every
// token, and then those that count.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <limits>

#include "models/families/moe.h"

namespace lockstep::models {
namespace {

using at::Tensor;

/// All is float64 but the router's scores and what is made of them: a handful of roundings to 2^-24, larger by sums of
/// some dozen terms.
constexpr double kRoundings = 64 * 0x1p-24;
constexpr int64_t kSamples = 2, kLength = 9, kWidth = 12;

struct Root : Module {};

/// Values of all parameters, drawn by their names' order; leaves.
void fill(const Module& module) {
  at::manual_seed(3);
  for (auto* parameter : module.parameters())
    parameter->assign((at::randn(parameter->sizes(), at::kDouble) * 0.5).requires_grad_(parameter->trainable()));
}

Tensor parameter(const Module& module, const std::string& name) {
  for (const auto* each : module.parameters())
    if (each->name().ends_with(name)) return each->tensor();
  ADD_FAILURE() << name;
  return {};
}

LlamaOptions dense() {
  LlamaOptions options;
  options.width = kWidth, options.heads = options.key_value_heads = 2, options.hidden = 8;
  return options;
}

/// silu(x g^T) * (x u^T), times d^T.
Tensor gated(const Tensor& x, const Tensor& gate, const Tensor& up, const Tensor& down) {
  return at::linear(at::silu(at::linear(x, gate)) * at::linear(x, up), down);
}

/// The weight of each expert for each token, 0 where it is not chosen, [batch, length, count].
Tensor dense_weights(const MixtureOfExperts& layer, const ExpertOptions& o, const Tensor& x) {
  const auto logits = at::linear(x, parameter(layer, "router.gate.weight"));
  const auto scores = o.sigmoid_scores ? at::sigmoid(logits.to(at::kFloat)) : at::softmax(logits, -1, at::kFloat);
  auto wanted = scores.detach();
  if (o.balance_rate > 0) wanted = wanted + parameter(layer, "expert_bias");
  const auto grouped = wanted.view({kSamples, kLength, o.groups, o.count / o.groups});
  const auto of_groups = std::get<0>(at::topk(grouped, std::min<int64_t>(2, o.count / o.groups))).sum(-1);
  const auto least_group = std::get<0>(at::topk(of_groups, o.groups_per_token)).select(-1, o.groups_per_token - 1);
  wanted = at::where(of_groups.ge(least_group.unsqueeze(-1)).unsqueeze(-1), grouped,
                     at::full_like(grouped, -std::numeric_limits<float>::infinity()))
               .view_as(scores);
  const auto least = std::get<0>(at::topk(wanted, o.per_token)).select(-1, o.per_token - 1);
  auto weights = scores * wanted.ge(least.unsqueeze(-1));
  if (o.normalized) weights = weights / weights.sum(-1, true);
  return weights * o.scale;
}

Tensor expected(const MixtureOfExperts& layer, const ExpertOptions& o, const Tensor& x) {
  const auto weights = dense_weights(layer, o, x);
  const auto w1 = parameter(layer, "experts.w1"), w2 = parameter(layer, "experts.w2"),
             w3 = parameter(layer, "experts.w3");
  auto sum = at::zeros_like(x);
  for (int64_t e = 0; e < o.count; ++e) {
    const auto weight = weights.select(-1, e).unsqueeze(-1);
    sum = sum +
          (o.score_before_experts ? gated(x * weight, w1[e], w3[e], w2[e]) : weight * gated(x, w1[e], w3[e], w2[e]));
  }
  if (o.shared == 0) return sum;
  const auto both = parameter(layer, "shared_experts.gate_up.weight").view({2, 2, -1, kWidth});  // two groups of rows
  return sum + gated(x, both.select(1, 0).flatten(0, 1), both.select(1, 1).flatten(0, 1),
                     parameter(layer, "shared_experts.w2.weight"));
}

/// Gradients of x and of all that is trained, of a sum with unequal weights.
std::vector<Tensor> gradients(const Module& module, const Tensor& y, const Tensor& x) {
  (y * at::arange(y.numel(), at::kFloat).view_as(y).sin()).sum().backward();
  std::vector<Tensor> all{x.grad().clone()};
  x.mutable_grad().reset();
  for (auto* each : module.parameters()) {
    if (!each->trainable()) continue;
    all.push_back(each->tensor().grad().clone());
    each->tensor().mutable_grad().reset();
  }
  return all;
}

Tensor input() {
  at::manual_seed(5);
  return at::randn({kSamples, kLength, kWidth}, at::kDouble).requires_grad_();
}

template <class Layer, class Formula>
void expect_formula(const Module& root, const Layer& layer, const Formula& formula) {
  const auto x = input();
  const auto y = layer(x), wanted = formula(x);
  EXPECT_TRUE(at::allclose(y, wanted, kRoundings, kRoundings)) << (y - wanted).abs().max();
  const auto own = gradients(root, y, x), theirs = gradients(root, wanted, x);
  for (size_t i = 0; i < own.size(); ++i)
    EXPECT_TRUE(at::allclose(own[i], theirs[i], kRoundings, kRoundings))
        << i << ": " << (own[i] - theirs[i]).abs().max();
}

void expect_layer(const ExpertOptions& options) {
  Root root;
  MixtureOfExperts layer(root, "moe", options, dense(), 0);
  fill(root);
  expect_formula(
      root, [&](const Tensor& x) { return layer.forward(x); },
      [&](const Tensor& x) { return expected(layer, options, x); });
}

TEST(MixtureOfExperts, WeighsTheBestBySoftmax) { expect_layer({.count = 6, .per_token = 2, .hidden = 10}); }
TEST(MixtureOfExperts, LeavesSoftmaxAsItIs) {
  expect_layer({.count = 6, .per_token = 3, .hidden = 10, .normalized = false, .scale = 2.5});
}
TEST(MixtureOfExperts, ChoosesAmongTheBestGroupsByBias) {
  expect_layer({.count = 8,
                .per_token = 3,
                .hidden = 6,
                .sigmoid_scores = true,
                .scale = 2.5,
                .groups = 4,
                .groups_per_token = 2,
                .balance_rate = 1e-3});
}
TEST(MixtureOfExperts, AddsWhatAllTokensHave) { expect_layer({.count = 4, .per_token = 1, .hidden = 10, .shared = 2}); }
TEST(MixtureOfExperts, WeighsWhatExpertsTake) {
  expect_layer({.count = 4,
                .per_token = 2,
                .hidden = 10,
                .sigmoid_scores = true,
                .normalized = false,
                .score_before_experts = true});
}
TEST(MixtureOfExperts, HasOneExpert) { expect_layer({.count = 1, .per_token = 1, .hidden = 10}); }

/// Of equal scores those of lower numbers: all rows of the gate are 0.
TEST(MixtureOfExperts, BreaksTiesByNumber) {
  Root root;
  const ExpertOptions options{.count = 5, .per_token = 2, .hidden = 4};
  Router router(root, "router", options, kWidth, 0);
  for (auto* each : root.parameters()) each->assign(at::zeros(each->sizes(), at::kDouble));
  const auto experts = router.forward(input(), nullptr).experts;
  EXPECT_TRUE(at::equal(experts, at::tensor({0, 1}, c10::kLong).expand_as(experts)));
}

/// By matrices of all weights, keys of all heads.
Tensor expected_attention(const Module& layer, const LatentOptions& o, const Tensor& x, const Places& places) {
  const int64_t heads = 2;
  const auto normed = [&](const Tensor& y, const char* name) {
    return y * at::rsqrt(at::mean(y * y, -1, true) + 1e-5) * parameter(layer, name);
  };
  const auto split = [&](const Tensor& y) { return y.view({kSamples, kLength, heads, -1}).transpose(1, 2); };
  const auto q = split(at::linear(normed(at::linear(x, parameter(layer, "wq_a.weight")), "q_norm.weight"),
                                  parameter(layer, "wq_b.weight")));
  const auto down = at::linear(x, parameter(layer, "wkv_a.weight"));
  const auto kv = split(
      at::linear(normed(down.narrow(-1, 0, o.key_value_rank), "kv_norm.weight"), parameter(layer, "wkv_b.weight")));
  const auto turned = [&](const Tensor& y) { return rotated(y, places); };
  const auto query = at::cat({q.narrow(-1, 0, o.plain_size), turned(q.narrow(-1, o.plain_size, o.rotated_size))}, -1);
  const auto shared = turned(down.narrow(-1, o.key_value_rank, o.rotated_size).unsqueeze(1));
  const auto key =
      at::cat({kv.narrow(-1, 0, o.plain_size), shared.expand({kSamples, heads, kLength, o.rotated_size})}, -1);
  const auto later = at::ones({kLength, kLength}, at::kBool).triu(1);
  const auto scores = at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(o.head_size()));
  const auto weights = at::softmax(scores.masked_fill(later, -std::numeric_limits<float>::infinity()), -1);
  const auto mixed = at::matmul(weights, kv.narrow(-1, o.plain_size, o.value_size));
  return at::linear(mixed.transpose(1, 2).reshape({kSamples, kLength, -1}), parameter(layer, "wo.weight"));
}

TEST(LatentAttention, IsItsFormula) {
  Root root;
  const LatentOptions latent{.query_rank = 5, .key_value_rank = 7, .plain_size = 6, .rotated_size = 4, .value_size = 3};
  LatentAttention layer(root, "attention", dense(), latent, 0);
  fill(root);
  const auto tables = rope_tables({4, 10000, 1}, kLength);
  const Places places{tables.cosines, tables.sines, {}};
  expect_formula(
      root, [&](const Tensor& x) { return layer.forward(x, places); },
      [&](const Tensor& x) { return expected_attention(root, latent, x, places); });
}

}  // namespace
}  // namespace lockstep::models
