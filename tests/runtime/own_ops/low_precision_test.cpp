// Quantised tensors beside LibTorch's float8 and plain readings of the definitions; the same bits on meshes.
#include "core/elementary/low_precision.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"

namespace lockstep {
namespace {

using at::Tensor;
using elementary::NumberFormat;
using ::testing::HasSubstr;
using testing::message_of;
using testing::same_bits;

int64_t number(NumberFormat format) { return static_cast<int64_t>(format); }

/// All bfloat16 numbers up to `largest`, and as many float32 numbers between.
Tensor all_up_to(double largest) {
  const auto bits = at::arange(0, 65536, at::kInt).to(at::kShort);
  const auto narrow = bits.view(at::kBFloat16).to(at::kFloat);
  const auto finite = narrow.masked_select(narrow.abs() <= largest);
  return at::cat({finite, finite * 0.998F + 1e-5F}).clamp(-largest, largest);
}

TEST(LowPrecisionOps, RoundAsLibTorchCasts) {
  for (const auto& [format, dtype, largest] : {std::tuple{NumberFormat::kE4m3, c10::kFloat8_e4m3fn, 448.0},
                                               {NumberFormat::kE5m2, c10::kFloat8_e5m2, 57344.0}}) {
    const auto x = all_up_to(largest), maximum = at::full({}, largest, at::kFloat);  // a scale of 1
    const auto cast = x.to(dtype);
    EXPECT_TRUE(same_bits(mesh_ops::quantize(x, maximum, number(format), false), cast.to(at::kFloat)));
    EXPECT_TRUE(at::equal(mesh_ops::float8_codes(x, maximum, number(format), false), cast.view(at::kByte)));
    const auto codes = at::arange(0, 256, at::kInt).to(at::kByte);
    const auto numbers = mesh_ops::float8_numbers(codes, maximum, number(format), false);
    EXPECT_TRUE(at::allclose(numbers, codes.view(dtype).to(at::kFloat), 0, 0, /*equal_nan=*/true));
  }
}

TEST(LowPrecisionOps, SaturateWhereLibTorchDoesNot) {
  const auto x = at::tensor({463.0F, 465.0F, 1e9F, -INFINITY, NAN}), maximum = at::full({}, 448.0F);
  const auto y = mesh_ops::quantize(x, maximum, number(NumberFormat::kE4m3), false);
  EXPECT_TRUE(at::allclose(y, at::tensor({448.0F, 448.0F, 448.0F, -448.0F, NAN}), 0, 0, true));
}

/// torchao's amax_to_scale(), then the nearest number by LibTorch's cast.
TEST(LowPrecisionOps, ScaleRowsAsTorchaoDoes) {
  const auto x = at::randn({5, 7, 33}) * 100, maximum = x.abs().amax(-1, true);
  const auto scale = (448.0 / maximum.to(at::kDouble).clamp_min(1e-12)).to(at::kFloat);
  const auto expected = (x * scale).clamp(-448, 448).to(at::kFloat8_e4m3fn).to(at::kFloat) / scale;
  EXPECT_TRUE(same_bits(mesh_ops::quantize(x, maximum, 0, false), expected));
  const auto rounded = at::exp2(at::floor(at::log2(scale)));
  const auto by_powers = (x * rounded).to(at::kFloat8_e4m3fn).to(at::kFloat) / rounded;
  EXPECT_TRUE(same_bits(mesh_ops::quantize(x, maximum, 0, true), by_powers));
}

TEST(LowPrecisionOps, AreTheirCodes) {
  const auto x = at::randn({4, 33}).to(at::kBFloat16), maximum = x.abs().amax();
  for (const int64_t format : {0, 1})
    for (const bool power : {false, true}) {
      const auto codes = mesh_ops::float8_codes(x, maximum, format, power);
      EXPECT_EQ(codes.scalar_type(), at::kByte);
      EXPECT_TRUE(same_bits(mesh_ops::float8_numbers(codes, maximum, format, power),
                            mesh_ops::quantize(x, maximum, format, power)));
    }
}

/// Products of codes are products of what they stand for.
TEST(LowPrecisionOps, MultiplyWhatCodesStandFor) {
  const auto x = at::randn({2, 5, 33}), weight = at::randn({7, 33}), g = at::randn({2, 5, 7});
  const auto row_maxima = x.abs().amax(-1, true), weight_maxima = weight.abs().amax(-1, true);
  for (const bool power : {false, true}) {
    const auto product = mesh_ops::float8_linear(mesh_ops::float8_codes(x, row_maxima, 1, power), row_maxima,
                                                 mesh_ops::float8_codes(weight, weight_maxima, 0, power), weight_maxima,
                                                 1, power, at::kBFloat16);
    const auto factors =
        at::linear(mesh_ops::quantize(x, row_maxima, 1, power), mesh_ops::quantize(weight, weight_maxima, 0, power));
    EXPECT_TRUE(same_bits(product, factors.to(at::kBFloat16)));
    const auto g_maxima = g.abs().amax(1, true), x_maxima = x.abs().amax(1, true);
    const auto gradient =
        mesh_ops::float8_weight_gradient(mesh_ops::float8_codes(g, g_maxima, 1, power), g_maxima,
                                         mesh_ops::float8_codes(x, x_maxima, 0, power), x_maxima, 1, power);
    const auto expected = at::mm(mesh_ops::quantize(g, g_maxima, 1, power).view({10, 7}).t(),
                                 mesh_ops::quantize(x, x_maxima, 0, power).view({10, 33}));
    EXPECT_TRUE(same_bits(gradient, expected));
  }
}

TEST(LowPrecisionOps, WhatHasNoFiniteMaximumIsNoNumber) {
  for (const float wrong : {INFINITY, NAN}) {
    const auto x = at::tensor({1.0F, wrong});
    EXPECT_TRUE(mesh_ops::quantize(x, x.abs().amax(), 0, false).isnan().all().item<bool>());
    EXPECT_TRUE(mesh_ops::quantize_blocks(x, 0, 0).isnan().all().item<bool>());
  }
}

/// The definition of MXFP8 and MXFP4 with LibTorch's ops, in double: blocks along `dim`, the last one filled up by
/// zeros.
Tensor by_definition(const Tensor& x, int64_t dim, NumberFormat format) {
  const auto grid = elementary::grid_of(format);
  const auto last = x.transpose(dim, -1).to(at::kDouble);
  const int64_t width = last.size(-1), filled = (width + 31) / 32 * 32;
  const auto blocks = at::constant_pad_nd(last, {0, filled - width}).unflatten(-1, {filled / 32, 32});
  const auto exponents = at::floor(at::log2(blocks.abs().amax(-1, true))) - grid.largest_exponent;
  const auto scaled = blocks / at::exp2(exponents);
  const auto own = at::floor(at::log2(scaled.abs())).clamp_min(grid.least_exponent),
             step = at::exp2(own - grid.fraction_bits);
  const auto nearest = (at::round(scaled / step) * step).clamp(-grid.largest, grid.largest) * at::exp2(exponents);
  return nearest.flatten(-2).narrow(-1, 0, width).transpose(dim, -1).to(at::kFloat);
}

TEST(LowPrecisionOps, ShareTheScalesOfBlocks) {
  const auto x = at::randn({3, 70, 5}) * at::exp2(at::randint(-9, 9, {3, 70, 5}));
  for (const auto format : {NumberFormat::kE4m3, NumberFormat::kE2m1})
    for (const int64_t dim : {-1, 0, 1})
      EXPECT_TRUE(at::equal(mesh_ops::quantize_blocks(x, dim, number(format)), by_definition(x, dim, format))) << dim;
}

class LowPrecisionOnMeshes : public ::testing::Test {
 protected:
  Tensor put(const Tensor& plain, const char* layout) { return distribute(plain, Layout::parse(mesh_, layout)); }

  std::unique_ptr<World> world_ = testing::simulated_world({{"dp", 2}, {"tp", 3}});
  const Mesh& mesh_ = world_->mesh("dp=2,tp=3");
  const Tensor x_ = at::randn({4, 96, 7});
};

TEST_F(LowPrecisionOnMeshes, ScalesAreOfTheWholeTensor) {
  const auto expected = mesh_ops::quantize(x_, mesh_ops::absolute_maximum(x_), 0, false);
  const auto by_column = mesh_ops::quantize(x_, at::amax(x_.abs(), {1}, true), 1, true);
  for (const char* layout : {"[]", "[dp=S(0), tp=S(1)]", "[dp=S(1), tp=S(2)]", "[tp=S(2)]"}) {
    const auto x = put(x_, layout);
    EXPECT_TRUE(same_bits(gather(mesh_ops::quantize(x, mesh_ops::absolute_maximum(x), 0, false)), expected)) << layout;
    EXPECT_TRUE(same_bits(gather(mesh_ops::quantize(x, at::amax(at::abs(x), {1}, true), 1, true)), by_column))
        << layout;
  }
}

TEST_F(LowPrecisionOnMeshes, BlocksAreWhole) {
  const auto expected = mesh_ops::quantize_blocks(x_, 1, 0);
  for (const char* layout : {"[dp=S(0), tp=S(1)]", "[dp=S(1)]", "[dp=S(1), tp=S(2)]"})
    EXPECT_TRUE(same_bits(gather(mesh_ops::quantize_blocks(put(x_, layout), 1, 0)), expected)) << layout;
  // A third of 96 elements is a block, half of them is none: those are gathered.
  EXPECT_EQ(layout_of(mesh_ops::quantize_blocks(put(x_, "[tp=S(1)]"), 1, 0)).text(), "[dp=R, tp=S(1)]");
  EXPECT_EQ(layout_of(mesh_ops::quantize_blocks(put(x_, "[dp=S(1)]"), 1, 0)).text(), "[dp=R, tp=R]");
}

/// Cut along every dimension, the summed ones, too; numbers are sixteenths, so that sums are exact in any order.
TEST_F(LowPrecisionOnMeshes, ProductsOfCodesAreThoseOfTheWhole) {
  const auto codes = [](c10::IntArrayRef sizes) {
    return at::randint(-8, 9, sizes).div(8).to(at::kFloat8_e4m3fn).view(at::kByte);
  };
  const auto x = codes({4, 6, 10}), weight = codes({5, 10}), g = codes({4, 6, 5}), one = at::full({}, 448.0F);
  const auto of_rows = one.expand({4, 6, 1}), of_weight = one.expand({5, 1});
  const auto of_g = one.expand({4, 1, 5}), of_x = one.expand({4, 1, 10});
  const auto product = mesh_ops::float8_linear(x, of_rows, weight, of_weight, 0, true, at::kFloat);
  const auto gradient = mesh_ops::float8_weight_gradient(g, of_g, x, of_x, 0, true);
  EXPECT_GT(product.abs().sum().item<float>() * gradient.abs().sum().item<float>(), 0);
  const auto whole = [&](const Tensor& plain) { return put(plain.contiguous(), "[]"); };
  for (const char* layout : {"[]", "[dp=S(0), tp=S(1)]", "[dp=S(1), tp=S(2)]", "[dp=S(2), tp=S(0)]"}) {
    EXPECT_TRUE(at::equal(gather(mesh_ops::float8_linear(put(x, layout), whole(of_rows), whole(weight),
                                                         whole(of_weight), 0, true, at::kFloat)),
                          product))
        << layout;
    EXPECT_TRUE(at::equal(
        gather(mesh_ops::float8_weight_gradient(put(g, layout), whole(of_g), put(x, layout), whole(of_x), 0, true)),
        gradient))
        << layout;
  }
  // More ranks than columns: the last one has none.
  const auto narrow = codes({4, 6, 2}), of_narrow = one.expand({4, 1, 2});
  EXPECT_TRUE(at::equal(gather(mesh_ops::float8_weight_gradient(put(narrow, "[tp=S(2)]"), whole(of_narrow), whole(x),
                                                                whole(of_x), 0, true)),
                        mesh_ops::float8_weight_gradient(narrow, of_narrow, x, of_x, 0, true)));
  const auto by_columns = mesh_ops::float8_linear(put(x, "[tp=S(2)]"), whole(of_rows), put(weight, "[tp=S(1)]"),
                                                  whole(of_weight), 0, true, at::kFloat);
  EXPECT_EQ(layout_of(by_columns).text(), "[dp=R, tp=P(sum)]");
}

TEST_F(LowPrecisionOnMeshes, ProductsOfWhatAreNoCodesAreRefused) {
  const auto x = put(at::zeros({2, 3, 4}, at::kByte), "[]"), weight = put(at::zeros({5, 4}, at::kByte), "[]");
  const auto rows = put(at::ones({2, 3, 1}), "[]"), of_weight = put(at::ones({5, 1}), "[]");
  const auto linear = [&](const Tensor& x, const Tensor& rows, int64_t format) {
    return message_of<BadInput>([&] { mesh_ops::float8_linear(x, rows, weight, of_weight, format, true, at::kFloat); });
  };
  EXPECT_THAT(linear(x, rows, 2), HasSubstr("format 2 is none of 0 to 1"));
  EXPECT_THAT(linear(put(at::zeros({2, 3, 4}), "[]"), rows, 0), HasSubstr("codes are uint8, not Float"));
  EXPECT_EQ(linear(x, put(at::ones({2, 3, 4}), "[]"), 0),
            "mesh::float8_linear: x_maximum has 4 elements for a row, expected 1");
  EXPECT_THAT(linear(x, put(at::ones({2, 2, 1}), "[]"), 0), HasSubstr("dimension 1 of operand 1 has 2 elements"));
  EXPECT_THAT(linear(x, put(at::ones({2, 3, 1}, at::kLong), "[]"), 0), HasSubstr("x_maximum holds Long"));
  EXPECT_THAT(linear(x, put(at::ones({2, 3, 1}, at::kDouble), "[]"), 0),
              HasSubstr("x_maximum is Double and weight_maximum Float: numbers of both have to be of one dtype"));
  const auto gradient = [&](const Tensor& g, const Tensor& of_g, int64_t format) {
    return message_of<BadInput>([&] {
      mesh_ops::float8_weight_gradient(g, of_g, x, put(at::ones({2, 1, 4}), "[]"), format, true);
    });
  };
  const auto g = put(at::zeros({2, 3, 5}, at::kByte), "[]");
  EXPECT_THAT(gradient(g, put(at::ones({2, 1, 5}), "[]"), 3), HasSubstr("format 3 is none of 0 to 1"));
  EXPECT_EQ(gradient(g, put(at::ones({2, 3, 5}), "[]"), 0),
            "mesh::float8_weight_gradient: gradient_maximum has 3 elements for a column, expected 1");
  EXPECT_THAT(gradient(put(at::zeros({2, 3, 5}), "[]"), put(at::ones({2, 1, 5}), "[]"), 0),
              HasSubstr("codes are uint8, not Float"));
  EXPECT_THAT(gradient(put(at::zeros({1, 3, 5}, at::kByte), "[]"), put(at::ones({1, 1, 5}), "[]"), 0),
              HasSubstr("operand 2 has 2 elements"));
}

TEST_F(LowPrecisionOnMeshes, RefusesWhatIsNone) {
  const auto x = put(x_, "[]"), one = put(at::ones({}), "[]");
  EXPECT_THAT(message_of<BadInput>([&] { mesh_ops::quantize(x, one, 4, false); }),
              HasSubstr("format 4 is none of 0 to 3"));
  EXPECT_THAT(message_of<BadInput>([&] { mesh_ops::float8_codes(x, one, 2, false); }), HasSubstr("none of 0 to 1"));
  EXPECT_THAT(message_of<BadInput>([&] { mesh_ops::quantize(x, put(at::ones({3}), "[]"), 0, false); }),
              HasSubstr("maxima of sizes [3] are none of a tensor of sizes [4, 96, 7]"));
  EXPECT_THAT(message_of<BadInput>([&] { mesh_ops::quantize(x.to(at::kLong), one, 0, false); }),
              HasSubstr("operand 0 holds Long, expected float32, bfloat16 or float16"));
}

}  // namespace
}  // namespace lockstep
