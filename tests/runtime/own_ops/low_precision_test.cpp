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
