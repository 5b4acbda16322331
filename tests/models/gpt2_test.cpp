// GPT-2 beside the same formulas on tensors by name, in float64 and without a mesh: values, gradients, sizes, names.
#include "models/families/gpt2.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/error.h"

namespace lockstep::models {
namespace {

using at::Tensor;

Gpt2Options small_options() {
  Gpt2Options options;
  options.width = 24;
  options.layers = 3;
  options.heads = 4;
  options.hidden = 40;
  options.vocabulary = 29;
  options.positions = 16;
  options.dropout = 0;
  return options;
}

/// Leaves with the names and sizes of stored tensors; none of them is a special case such as 0 or 1.
class StoredTensors {
 public:
  explicit StoredTensors(const Model& model) {
    for (const auto* parameter : model.parameters())
      for (size_t part = 0; part < parameter->division().parts().size(); ++part)
        tensors_[parameter->division().parts()[part].name] =
            at::randn(parameter->division().sizes_of(part), at::kDouble).mul_(0.3).requires_grad_();
  }

  const Tensor& operator[](const std::string& name) const { return tensors_.at(name); }

  /// The parameter's rows, put together from its parts: values, or gradients.
  Tensor fused(const Parameter& parameter, bool gradients) const {
    const auto& division = parameter.division();
    auto whole = at::empty(parameter.sizes(), at::kDouble);
    for (size_t part = 0; part < division.parts().size(); ++part) {
      const auto& stored = (*this)[division.parts()[part].name];
      const auto from = gradients ? stored.grad() : stored.detach();
      for (const auto& rows : division.rows_of(part, 0, parameter.sizes()[0]))
        whole.narrow(0, rows.row, rows.count).copy_(from.narrow(0, rows.part_row, rows.count));
    }
    return whole;
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

Tensor linear(const StoredTensors& stored, const std::string& name, const Tensor& x) {
  return at::matmul(x, stored[name + ".weight"].t()) + stored[name + ".bias"];
}

Tensor norm(const StoredTensors& stored, const std::string& name, const Tensor& x) {
  const auto around = x - x.mean(-1, true);
  return around / (around.square().mean(-1, true) + 1e-5).sqrt() * stored[name + ".weight"] + stored[name + ".bias"];
}

Tensor gelu_by_tanh(const Tensor& x) {
  return 0.5 * x * (1 + at::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x.pow(3))));
}

Tensor attention(const StoredTensors& stored, const std::string& path, const Tensor& x, int64_t heads) {
  const int64_t batch = x.size(0), length = x.size(1), size = x.size(2) / heads;
  const auto split = [&](const char* name) {
    return linear(stored, path + name, x).view({batch, length, heads, size}).transpose(1, 2);
  };
  const auto scores = at::matmul(split(".wq"), split(".wk").transpose(2, 3)) / std::sqrt(static_cast<double>(size));
  const auto later = at::ones({length, length}, at::kBool).triu(1);
  const auto mixed = at::matmul(scores.masked_fill(later, -INFINITY).softmax(-1), split(".wv"));
  return linear(stored, path + ".wo", mixed.transpose(1, 2).reshape(x.sizes()));
}

Tensor logits(const StoredTensors& stored, const Gpt2Options& options, const Tensor& tokens) {
  auto x =
      stored["tok_embeddings.weight"].index({tokens}) + stored["pos_embeddings.weight"].narrow(0, 0, tokens.size(1));
  for (int64_t layer = 0; layer < options.layers; ++layer) {
    const auto path = fmt::format("layers.{}.", layer);
    x = x + attention(stored, path + "attention", norm(stored, path + "attention_norm", x), options.heads);
    const auto hidden = gelu_by_tanh(linear(stored, path + "feed_forward.w1", norm(stored, path + "ffn_norm", x)));
    x = x + linear(stored, path + "feed_forward.w2", hidden);
  }
  return at::matmul(norm(stored, "norm", x), stored["tok_embeddings.weight"].t());
}

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& name) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << name;
  const double scale = std::max(expected.abs().max().item<double>(), 1e-300);
  EXPECT_LT((actual - expected).abs().max().item<double>() / scale, 1e-12) << name;
}

TEST(Gpt2, IsItsFormulas) {
  const auto options = small_options();
  Gpt2 model(options);
  const StoredTensors stored(model);
  for (auto* parameter : model.parameters()) parameter->assign(stored.fused(*parameter, false).requires_grad_());
  const auto tokens = at::arange(3 * 11, at::kLong).mul(7).remainder(options.vocabulary).view({3, 11});
  const auto actual = model.forward(tokens), expected = logits(stored, options, tokens);
  expect_close(actual, expected, "logits");
  const auto weights = at::randn(expected.sizes(), at::kDouble);
  (actual * weights).sum().backward();
  (expected * weights).sum().backward();
  for (const auto* parameter : model.parameters())
    expect_close(parameter->tensor().grad(), stored.fused(*parameter, true), parameter->name());
}

TEST(Gpt2, DropsWhatItAddsToTheStream) {
  auto options = small_options();
  options.dropout = 0.5;
  Gpt2 model(options);
  const StoredTensors stored(model);
  for (auto* parameter : model.parameters()) parameter->assign(stored.fused(*parameter, false));
  const auto tokens = at::arange(6, at::kLong).view({1, 6});
  EXPECT_FALSE(at::equal(model.forward(tokens), model.forward(tokens)));
}

TEST(Gpt2, HasThePublishedParameterCounts) {
  const std::pair<const char*, int64_t> expected[] = {
      {"debugmodel", 560640}, {"124M", 124439808}, {"355M", 354823168}, {"774M", 774030080}, {"1.5B", 1557611200}};
  for (const auto& [name, count] : expected) EXPECT_EQ(Gpt2(gpt2_flavor(name)).parameter_count(), count) << name;
}

/// All of its weights but the table of 1024 positions, and attention.
TEST(Gpt2, CountsOperations) {
  EXPECT_EQ(Gpt2(gpt2_flavor("124M")).operations_per_token(1024),
            6.0 * (124439808 - 1024 * 768) + 12.0 * 12 * 768 * 1024);
}

TEST(Gpt2, RefusesAnUnknownFlavor) {
  try {
    gpt2_flavor("117M");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(),
                 "model.flavor 117M is not known for gpt2; choose one of debugmodel, 124M, 355M, 774M, 1.5B");
  }
}

TEST(Gpt2, RefusesMoreTokensThanItHasPositions) {
  Gpt2 model(small_options());
  try {
    model.forward(at::zeros({1, 17}, at::kLong));
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "a sequence of 17 tokens is longer than the model's 16 positions");
  }
}

/// Initial deviations, 0 of constants, by the names of docs/checkpoint.md.
TEST(Gpt2, IsDrawnAndStoredByName) {
  const Gpt2 model(small_options());
  std::map<std::string, double> deviations;
  for (const auto* parameter : model.parameters())
    for (const auto& part : parameter->division().parts())
      deviations[part.name] = part.initial.is_constant ? 0 : part.initial.distribution.deviation;
  const double later = 0.02 / std::sqrt(6.0);
  std::map<std::string, double> expected{
      {"tok_embeddings.weight", 0.02}, {"pos_embeddings.weight", 0.02}, {"norm.weight", 0}, {"norm.bias", 0}};
  for (const int layer : {0, 1, 2})
    for (const auto& [name, deviation] : {std::pair{"attention_norm", 0.0},
                                          {"ffn_norm", 0.0},
                                          {"attention.wq", 0.02},
                                          {"attention.wk", 0.02},
                                          {"attention.wv", 0.02},
                                          {"attention.wo", later},
                                          {"feed_forward.w1", 0.02},
                                          {"feed_forward.w2", later}}) {
      expected[fmt::format("layers.{}.{}.weight", layer, name)] = deviation;
      expected[fmt::format("layers.{}.{}.bias", layer, name)] = 0;
    }
  EXPECT_EQ(deviations, expected);
}

}  // namespace
}  // namespace lockstep::models
