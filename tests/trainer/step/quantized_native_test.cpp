// Quantised linear maps in native numerics, whose products are of codes or of 16 bits, beside those of float32 numbers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"
#include "models/quantized_linear.h"
#include "runtime/redistribution/gather.h"

namespace lockstep {
namespace {

using at::Tensor;

void expect_near(const Tensor& actual, const Tensor& expected, const char* what) {
  const auto difference = (actual.to(at::kDouble) - expected.to(at::kDouble)).norm().item<double>();
  EXPECT_LT(difference, 1e-6 * expected.norm().item<double>()) << what;
}

struct Mapped {
  Tensor y, dx, dw, db;
};

Mapped mapped(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& g,
              const LinearQuantization& quantization) {
  const auto input = x.detach().requires_grad_(), weight = w.detach().requires_grad_();
  const auto bias = b.detach().requires_grad_();
  const auto y = quantized_linear(input, weight, bias, quantization);
  y.backward(g);
  return {y.detach(), input.grad(), weight.grad(), bias.grad()};
}

/// Native numerics multiplies codes, or 16 bits: the same factors, however they are cut, whose sums differ by their
/// roundings.
TEST(QuantizedLinear, NativeProductsAreOfTheSameFactors) {
  const auto world = testing::simulated_world({{"dp", 2}, {"tp", 2}});
  ASSERT_FALSE(world->canonical());
  const auto& mesh = world->mesh("dp=2,tp=2");
  const auto put = [&](const Tensor& x, const char* layout) { return distribute(x, Layout::parse(mesh, layout)); };
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto recipe : {LinearRecipe::kTensorwise, LinearRecipe::kRowwise,
                              LinearRecipe::kRowwiseExactWeightGradient, LinearRecipe::kMxfp8, LinearRecipe::kMxfp4}) {
      const LinearQuantization quantization{recipe, 16};
      const auto x = at::randn({4, 32, 64}).to(dtype), w = at::randn({32, 64}).to(dtype), b = at::randn({32}).to(dtype);
      const auto g = at::randn({4, 32, 32}).to(dtype);
      const auto plain = mapped(x, w, b, g, quantization);
      struct Layouts {
        const char *x, *weight, *gradient;
      };
      for (const auto& layouts : {Layouts{"[dp=S(0)]", "[]", "[dp=S(0)]"},
                                  {"[dp=S(0), tp=S(1)]", "[]", "[dp=S(0), tp=S(1)]"},
                                  {"[dp=S(0), tp=S(2)]", "[tp=S(1)]", "[dp=S(0)]"}}) {
        const auto here =
            mapped(put(x, layouts.x), put(w, layouts.weight), put(b, "[]"), put(g, layouts.gradient), quantization);
        const double allowed = dtype == at::kFloat ? 1e-6 : 0x1p-7;
        const auto expect_close = [&](const Tensor& actual, const Tensor& expected, const char* what) {
          const auto whole = gather(actual).to(at::kDouble), wide = expected.to(at::kDouble);
          EXPECT_EQ(actual.scalar_type(), dtype) << what;
          EXPECT_LT((whole - wide).norm().item<double>(), allowed * wide.norm().item<double>())
              << what << " of recipe " << static_cast<int>(recipe) << " on " << layouts.x;
        };
        expect_close(here.y, plain.y, "y"), expect_close(here.dx, plain.dx, "gradient of x");
        expect_close(here.dw, plain.dw, "gradient of the weight"), expect_close(here.db, plain.db, "of the bias");
      }
    }
}

/// A weight that came as numbers of eight bits has their codes.
TEST(QuantizedLinear, NativeProductsTakeNumbersThatAreQuantizedAlready) {
  const auto world = testing::simulated_world({{"dp", 1}});
  const auto put = [&](const Tensor& x) { return distribute(x, Layout::replicated(world->mesh("dp=1"))); };
  const auto x = at::randn({2, 16, 64}), w = at::randn({32, 64}), b = at::zeros({32}), g = at::randn({2, 16, 32});
  const auto once = mapped(put(x), put(w), put(b), put(g), {});
  const auto numbers = quantized_weight(w, {});
  const auto twice = mapped(put(x), put(numbers), put(b), put(g), {.weight_is_quantized = true});
  expect_near(gather(twice.y), gather(once.y), "y");
  expect_near(gather(twice.dx), gather(once.dx), "gradient of x");
}

}  // namespace
}  // namespace lockstep
