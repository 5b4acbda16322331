// Attention that drops weights: those that are left, scaled up, whoever holds which part of the matrix.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/context/scopes.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using at::Tensor;
using testing::same_bits;

constexpr int64_t kBatch = 4, kHeads = 6, kGroups = 3, kLength = 64, kSize = 8;

struct Inputs {
  Tensor query = at::randn({kBatch, kHeads, kLength, kSize}), key = at::randn({kBatch, kGroups, kLength, kSize}),
         value = at::randn({kBatch, kGroups, kLength, kSize}), gradient = at::randn({kBatch, kHeads, kLength, kSize});
};

Inputs to(const Inputs& in, c10::ScalarType dtype) {
  return {in.query.to(dtype), in.key.to(dtype), in.value.to(dtype), in.gradient.to(dtype)};
}

/// Output and the gradients of query, key and value.
using Results = std::vector<Tensor>;

class AttentionDropout : public ::testing::Test {
 protected:
  /// `layout` of the query; keys and values are whole where it cuts positions. Rows `first` and on of the batch.
  Results run(const char* axes, const char* layout, const char* key_layout, double dropout, const Inputs& in,
              int64_t first = 0, Numerics numerics = Numerics::kCanonical, bool causal = true) {
    const auto world = testing::simulated_world(parse_axes(axes), {.numerics = numerics});
    const auto& mesh = world->mesh(axes);
    RunContext::current().begin_microbatch(/*step=*/1, /*microbatch=*/0);
    const RandomScope random(/*seed=*/7);
    const ModuleScope module("layers.0.attention");
    const BatchScope batch({.first = first, .count = kBatch});
    const auto put = [&](const Tensor& plain, const char* text) {
      return distribute(plain, Layout::parse(mesh, text)).requires_grad_();
    };
    const auto query = put(in.query, layout), key = put(in.key, key_layout), value = put(in.value, key_layout);
    const auto output =
        at::scaled_dot_product_attention(query, key, value, {}, dropout, causal, std::nullopt, /*enable_gqa=*/true);
    output.backward(put(in.gradient, layout).detach());
    return {gather(output.detach()), gather(query.grad()), gather(key.grad()), gather(value.grad())};
  }
  Results on_one_device(double dropout, const Inputs& in) { return run("a=1", "[]", "[]", dropout, in); }

  static std::vector<MeshAxis> parse_axes(const std::string& text) {
    std::vector<MeshAxis> axes;
    for (size_t at = 0; at < text.size(); at += 4) axes.push_back({text.substr(at, 1), text[at + 2] - '0'});
    return axes;
  }

  const Inputs in_{};
};

/// With the identity for values, what comes out is the weights.
TEST_F(AttentionDropout, DropsAShareAndScalesTheOthersUp) {
  Inputs in;
  in.value = at::eye(kLength).expand({kBatch, kGroups, kLength, kLength}).contiguous();
  in.gradient = at::ones({kBatch, kHeads, kLength, kLength});
  const double dropout = 0.3;
  const auto weights = on_one_device(dropout, in)[0].to(at::kDouble);
  const auto keys = in.key.to(at::kDouble).repeat_interleave(kHeads / kGroups, 1);
  const auto scores = at::matmul(in.query.to(at::kDouble), keys.transpose(-2, -1)) / std::sqrt(kSize);
  const auto later = at::ones({kLength, kLength}, at::kBool).triu(1);
  const auto expected = at::softmax(scores.masked_fill(later, -INFINITY), -1) / (1 - dropout);
  const auto is_kept = weights != 0;
  EXPECT_LT((weights - expected * is_kept).abs().max().item<double>(), 1e-6);
  EXPECT_EQ((is_kept & later).sum().item<int64_t>(), 0);
  // Of some 50,000 weights, five standard deviations.
  const auto seen = later.logical_not().expand_as(is_kept);
  const double count = seen.sum().item<double>(), kept = (is_kept & seen).sum().item<double>() / count;
  EXPECT_NEAR(kept, 1 - dropout, 5 * std::sqrt(dropout * (1 - dropout) / count));
  // Other ones for each sample, head and query.
  for (const int64_t dim : {0, 1}) EXPECT_FALSE(at::equal(is_kept.select(dim, 0), is_kept.select(dim, 1)));
}

/// Gradients by LibTorch's own autograd, of the same formula with the same weights left out.
TEST_F(AttentionDropout, GradientsAreThoseOfTheFormula) {
  Inputs by_weights = in_;
  by_weights.value = at::eye(kLength).expand({kBatch, kGroups, kLength, kLength}).contiguous();
  by_weights.gradient = at::ones({kBatch, kHeads, kLength, kLength});
  const auto mask = (on_one_device(0.3, by_weights)[0] != 0).to(at::kDouble) / 0.7;
  const auto results = on_one_device(0.3, in_);
  const auto plain = to(in_, at::kDouble);
  const auto query = plain.query.requires_grad_(), key = plain.key.requires_grad_(),
             value = plain.value.requires_grad_();
  const auto all = [](const Tensor& heads) { return heads.repeat_interleave(kHeads / kGroups, 1); };
  const auto later = at::ones({kLength, kLength}, at::kBool).triu(1);
  const auto scores = at::matmul(query, all(key).transpose(-2, -1)) / std::sqrt(kSize);
  const auto output = at::matmul(at::softmax(scores.masked_fill(later, -INFINITY), -1) * mask, all(value));
  output.backward(plain.gradient);
  const Tensor expected[] = {output.detach(), query.grad(), key.grad(), value.grad()};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_LT((results[i].to(at::kDouble) - expected[i]).abs().max().item<double>(), 2e-5) << i;
}

TEST_F(AttentionDropout, HasOneDevicesBitsOnAnyLayout) {
  struct Case {
    const char *axes, *layout, *key_layout;
  };
  constexpr Case kCases[] = {{"a=2", "[a=S(0)]", "[a=S(0)]"},
                             {"a=4", "[a=S(0)]", "[a=S(0)]"},
                             {"a=3", "[a=S(1)]", "[a=S(1)]"},
                             {"a=2", "[a=S(2)]", "[a=R]"},
                             {"a=2", "[a=R]", "[a=R]"},
                             {"a=2,b=3", "[a=S(0), b=S(1)]", "[a=S(0), b=S(1)]"},
                             {"a=2,b=2", "[a=S(0), b=S(2)]", "[a=S(0), b=R]"}};
  auto fewer_keys = in_;
  fewer_keys.key = in_.key.narrow(2, 0, 40), fewer_keys.value = in_.value.narrow(2, 0, 40);
  for (const auto& [dtype, causal, all] :
       {std::tuple{at::kFloat, true, &in_}, {at::kBFloat16, true, &in_}, {at::kFloat, false, &fewer_keys}}) {
    const auto in = to(*all, dtype);
    const auto expected = run("a=1", "[]", "[]", 0.3, in, 0, Numerics::kCanonical, causal);
    for (const auto& each : kCases) {
      const auto results = run(each.axes, each.layout, each.key_layout, 0.3, in, 0, Numerics::kCanonical, causal);
      for (size_t i = 0; i < 4; ++i)
        EXPECT_TRUE(same_bits(results[i], expected[i])) << each.axes << " " << each.layout << ", result " << i;
    }
  }
}

/// A microbatch drops what the whole batch drops there.
TEST_F(AttentionDropout, RowsOfTheBatchHaveTheirOwn) {
  auto same_rows = in_;
  for (Tensor* each : {&same_rows.query, &same_rows.key, &same_rows.value})
    *each = each->select(0, 0).unsqueeze(0).expand_as(*each).contiguous();
  const auto first = run("a=1", "[]", "[]", 0.3, same_rows)[0], later = run("a=1", "[]", "[]", 0.3, same_rows, 2)[0];
  EXPECT_TRUE(same_bits(first.narrow(0, 2, 2).contiguous(), later.narrow(0, 0, 2).contiguous()));
  EXPECT_FALSE(at::equal(first, later));
}

TEST_F(AttentionDropout, NativeNumericsDropsTheSame) {
  const auto expected = on_one_device(0.3, in_);
  constexpr std::pair<const char*, const char*> kLayouts[] = {
      {"[a=S(0)]", "[a=S(0)]"}, {"[a=S(1)]", "[a=S(1)]"}, {"[a=S(2)]", "[a=R]"}};
  for (const auto& [layout, key_layout] : kLayouts) {
    const auto results = run("a=3", layout, key_layout, 0.3, in_, 0, Numerics::kNative);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_LT((results[i] - expected[i]).abs().max().item<double>(), 1e-4) << layout << ", result " << i;
  }
}

/// docs/rng.md: element [sample, head, query, key] of the matrix of all weights, as if dropout were applied to it.
TEST_F(AttentionDropout, DropsWhatDropoutOfTheWholeMatrixDrops) {
  Inputs in;
  in.value = at::eye(kLength).expand({kBatch, kGroups, kLength, kLength}).contiguous();
  in.gradient = at::ones({kBatch, kHeads, kLength, kLength});
  for (const bool causal : {true, false}) {
    const auto world = testing::simulated_world(parse_axes("a=1"), {.numerics = Numerics::kCanonical});
    const auto put = [&](const Tensor& x) { return distribute(x, Layout::parse(world->mesh("a=1"), "[]")); };
    const RandomScope random(/*seed=*/7);
    const BatchScope batch({.first = 8, .count = kBatch});
    const auto in_module = [](auto&& run) {
      RunContext::current().begin_microbatch(/*step=*/1, /*microbatch=*/0);
      const ModuleScope module("layers.0.attention");
      return gather(run());
    };
    const auto weights = in_module([&] {
      return at::scaled_dot_product_attention(put(in.query), put(in.key), put(in.value), {}, 0.3, causal, std::nullopt,
                                              /*enable_gqa=*/true);
    });
    const auto ones = put(at::ones({kBatch, kHeads, kLength, kLength}));
    auto kept = in_module([&] { return std::get<1>(at::native_dropout(ones, 0.3, /*train=*/true)); });
    if (causal) kept = kept.logical_and(at::ones({kLength, kLength}, at::kBool).tril());
    EXPECT_TRUE(at::equal(weights != 0, kept)) << causal;
  }
}

/// LibTorch's generator on plain tensors: half of the weights, others at the next call.
TEST_F(AttentionDropout, OfPlainTensorsIsDrawnByLibTorch) {
  const auto run = [&] {
    const auto draws = mesh_ops::attention_draws(in_.query, kLength);
    const auto places = at::arange(kLength).expand({kBatch, kLength});
    const auto value = at::eye(kLength).expand({kBatch, kGroups, kLength, kLength}).contiguous();
    return std::get<0>(mesh_ops::document_attention(in_.query, in_.key, value, places, {draws, 0.5}, 0.3)) != 0;
  };
  at::manual_seed(3);
  const auto first = run(), second = run();
  at::manual_seed(3);
  EXPECT_TRUE(at::equal(run(), first));
  EXPECT_FALSE(at::equal(first, second));
  EXPECT_FALSE(at::equal(first.select(1, 0), first.select(1, 1)));
  const double seen = kBatch * kHeads * kLength * (kLength + 1) / 2.0;
  EXPECT_NEAR(first.sum().item<double>() / seen, 0.5, 5 * std::sqrt(0.25 / seen)) << "five standard deviations";
}

TEST_F(AttentionDropout, OfAllWeightsIsZero) {
  for (const auto& result : on_one_device(1, in_)) EXPECT_EQ(result.abs().max().item<double>(), 0);
}

TEST_F(AttentionDropout, HasNoSecondDerivative) {
  const auto world = testing::simulated_world(parse_axes("a=1"), {.numerics = Numerics::kCanonical});
  const auto put = [&](const Tensor& x) {
    return distribute(x, Layout::parse(world->mesh("a=1"), "[]")).requires_grad_();
  };
  RunContext::current().begin_microbatch(/*step=*/1, /*microbatch=*/0);
  const RandomScope random(/*seed=*/7);
  const auto query = put(in_.query);
  const auto output = at::scaled_dot_product_attention(query, put(in_.key), put(in_.value), {}, 0.3, true, std::nullopt,
                                                       /*enable_gqa=*/true);
  EXPECT_EQ(testing::message_of<BadInput>([&] {
              torch::autograd::grad({output.sum()}, {query}, {}, /*retain_graph=*/true, /*create_graph=*/true);
            }),
            "attention in packed documents, or with dropout, has no second derivative; set training.pack_documents = "
            "false and model.attention_dropout = 0 (dropout_p of scaled_dot_product_attention)");
}

/// What attention without dropout refuses, too: its parts would broadcast.
TEST_F(AttentionDropout, RefusesWhatDoesNotFit) {
  const auto refused = [&](const Inputs& in, double dropout) {
    try {
      run("a=2", "[a=R]", "[a=R]", dropout, in);
      return std::string();
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
  };
  auto heads = in_, batch = in_, values = in_, dims = in_, dtypes = in_;
  heads.query = at::randn({kBatch, 1, kLength, kSize});
  batch.key = at::randn({1, kGroups, kLength, kSize});
  values.value = at::randn({kBatch, 1, kLength, kSize});
  dims.key = at::randn({kGroups, kLength, kSize});
  dtypes.value = in_.value.to(at::kBFloat16);
  for (const auto& in : {heads, batch, values, dims, dtypes})
    for (const double dropout : {0.0, 0.3}) EXPECT_NE(refused(in, dropout), "") << dropout;
  EXPECT_EQ(
      refused(heads, 0.3),
      "mesh::document_attention: query [4, 1, 64, 8], key [4, 3, 64, 8] and value [4, 3, 64, 8] do not fit: expected "
      "[b, h*g, l, d], [b, h, s, d], [b, h, s, e]");
  EXPECT_EQ(refused(dtypes, 0.3),
            "mesh::document_attention: query, key and value have dtypes Float, Float and BFloat16; expected one");
  for (const double share : {1.5, -0.1}) EXPECT_THAT(refused(in_, share), ::testing::HasSubstr("should be in [0, 1]"));
  EXPECT_EQ(refused(in_, std::nan("")), "dropout probability nan should be in [0, 1]");
  const auto world = testing::simulated_world(parse_axes("a=2"), {});
  const auto key = distribute(in_.key, Layout::replicated(world->mesh("a=2")));
  EXPECT_EQ(testing::message_of<BadInput>([&] {
              at::scaled_dot_product_attention(in_.query, key, key, {}, 0.3, true, std::nullopt, /*enable_gqa=*/true);
            }),
            "attention: the query is a plain tensor beside tensors of a mesh; distribute() it");
}

}  // namespace
}  // namespace lockstep
