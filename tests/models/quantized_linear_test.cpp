// Quantised linear maps on one device beside the definition written with LibTorch's casts; what rounds passes gradients
// on.
#include "models/quantized_linear.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/own_ops/mesh_ops.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using at::Tensor;

Tensor scale_of(const Tensor& maximum, double largest, bool power) {
  const auto scale = (largest / maximum.to(at::kDouble).clamp_min(1e-12)).to(at::kFloat);
  return power ? at::exp2(at::floor(at::log2(scale))) : scale;
}

Tensor cast(const Tensor& x, at::IntArrayRef dims, at::ScalarType dtype, bool power) {
  const double largest = dtype == at::kFloat8_e4m3fn ? 448 : 57344;
  const auto maximum = dims.empty() ? x.abs().amax() : x.abs().amax(dims, true);
  const auto scale = scale_of(maximum, largest, power);
  return ((x * scale).clamp(-largest, largest).to(dtype).to(at::kFloat) / scale).to(at::kDouble);
}

/// What the three products multiply: x and w, g and w, g and x.
struct Factors {
  Tensor x, w, g, w_for_x, g_for_w, x_for_w;
};

Factors factors_of(LinearRecipe recipe, const Tensor& x, const Tensor& w, const Tensor& g) {
  const auto e4m3 = at::kFloat8_e4m3fn, e5m2 = at::kFloat8_e5m2;
  if (recipe == LinearRecipe::kTensorwise) {
    const auto one = cast(w, {}, e4m3, false), inputs = cast(x, {1, 2}, e4m3, false),
               slopes = cast(g, {1, 2}, e5m2, false);
    return {inputs, one, slopes, one, slopes, inputs};
  }
  Factors all{cast(x, {2}, e4m3, true), cast(w, {1}, e4m3, true), cast(g, {2}, e4m3, true),
              cast(w, {0}, e4m3, true), cast(g, {1}, e4m3, true), cast(x, {1}, e4m3, true)};
  if (recipe == LinearRecipe::kRowwiseExactWeightGradient)
    all.w_for_x = cast(w, {}, e4m3, true), all.g_for_w = g.to(at::kDouble), all.x_for_w = x.to(at::kDouble);
  return all;
}

void expect_near(const Tensor& actual, const Tensor& expected, const char* what) {
  EXPECT_LT((actual.to(at::kDouble) - expected).norm().item<double>(), 1e-6 * expected.norm().item<double>()) << what;
}

TEST(QuantizedLinear, MultipliesWhatTheRecipeMakesOfItsFactors) {
  for (const auto recipe :
       {LinearRecipe::kTensorwise, LinearRecipe::kRowwise, LinearRecipe::kRowwiseExactWeightGradient}) {
    const auto x = at::randn({3, 10, 48}).requires_grad_(), w = at::randn({20, 48}).requires_grad_();
    const auto bias = at::randn({20}).requires_grad_(), g = at::randn({3, 10, 20});
    const auto y = quantized_linear(x, w, bias, {recipe});
    y.backward(g);
    const auto f = factors_of(recipe, x.detach(), w.detach(), g);
    expect_near(y.detach(), at::linear(f.x, f.w, bias.detach().to(at::kDouble)), "y");
    expect_near(x.grad(), at::matmul(f.g, f.w_for_x), "gradient of x");
    expect_near(w.grad(), at::einsum("bln,blk->nk", {f.g_for_w, f.x_for_w}), "gradient of the weight");
    expect_near(bias.grad(), g.sum(at::IntArrayRef{0, 1}).to(at::kDouble), "gradient of the bias");
  }
}

TEST(QuantizedLinear, SharesScalesOfBlocksAlongWhatIsSummed) {
  const auto x = at::randn({2, 40, 64}).requires_grad_(), w = at::randn({32, 64}).requires_grad_(),
             g = at::randn({2, 40, 32});
  const auto y = quantized_linear(x, w, std::nullopt, {LinearRecipe::kMxfp4});
  y.backward(g);
  const auto of = [](const Tensor& t, int64_t dim) {
    return mesh_ops::quantize_blocks(t.detach(), dim, 2).to(at::kDouble);
  };
  expect_near(y.detach(), at::linear(of(x, 2), of(w, 1)), "y");
  expect_near(x.grad(), at::matmul(of(g, 2), of(w, 0)), "gradient of x");
  expect_near(w.grad(), at::einsum("bln,blk->nk", {of(g, 1), of(x, 1)}), "gradient of the weight");
}

TEST(QuantizedLinear, RoundsSixteenBitsOnce) {
  const auto x = at::randn({2, 5, 32}).to(at::kBFloat16), w = at::randn({16, 32}).to(at::kBFloat16);
  for (const auto recipe : {LinearRecipe::kTensorwise, LinearRecipe::kMxfp8}) {
    const auto wide = quantized_linear(x.to(at::kFloat), w.to(at::kFloat), std::nullopt, {recipe});
    EXPECT_TRUE(testing::same_bits(quantized_linear(x, w, std::nullopt, {recipe}), wide.to(at::kBFloat16)));
  }
}

/// One sample's outlier changes no other sample.
TEST(QuantizedLinear, KeepsSamplesApart) {
  const auto x = at::randn({2, 5, 32}), w = at::randn({16, 32});
  auto other = x.clone();
  other[1][0][0] = 1e6;
  const auto a = quantized_linear(x, w, std::nullopt, {}), b = quantized_linear(other, w, std::nullopt, {});
  EXPECT_TRUE(at::equal(a[0], b[0]));
  EXPECT_FALSE(at::equal(a[1], b[1]));
}

/// Where every block has an outlier, what is beside it keeps more bits.
TEST(QuantizedLinear, TurnsFactorsBeforeTheyAreRounded) {
  at::manual_seed(3);
  const auto x = at::randn({64, 256}) * at::where(at::rand({64, 256}) < 0.05, 20.0, 1.0), w = at::randn({32, 256});
  const auto exact = at::linear(x.to(at::kDouble), w.to(at::kDouble));
  const auto error = [&](LinearRecipe recipe, int64_t block) {
    return (quantized_linear(x, w, std::nullopt, {recipe, block}) - exact).norm().item<double>() /
           exact.norm().item<double>();
  };
  EXPECT_LT(error(LinearRecipe::kMxfp4, 256), 0.9 * error(LinearRecipe::kMxfp4, 0));
  EXPECT_THAT(testing::message_of<BadInput>([&] { error(LinearRecipe::kMxfp4, 512); }),
              ::testing::HasSubstr("rotations of blocks of 512 do not fit a product that sums 256 elements"));
}

TEST(QuantizedLinear, KeepsIntegersOfEightBits) {
  const auto w = at::randint(-127, 128, {16, 64}).to(at::kFloat) / 64;
  auto full = w.clone();
  full.select(1, 0).fill_(127.0 / 64);
  const auto q = quantized_weight(full, {LinearRecipe::kInt8Weights});
  EXPECT_LT((q - full).abs().max().item<double>(), 1e-6);
}

TEST(QuantizedLinear, HasNoSecondDerivative) {
  const auto x = at::randn({2, 3, 16}).requires_grad_(), w = at::randn({16, 16}).requires_grad_();
  const auto y = quantized_linear(x, w, std::nullopt, {}).sum();
  EXPECT_THAT(testing::message_of<BadInput>([&] { y.backward({}, true, true); }),
              ::testing::HasSubstr("a quantised linear map has no second derivative"));
}

}  // namespace
}  // namespace lockstep
