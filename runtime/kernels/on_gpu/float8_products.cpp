// Products of eight-bit numbers on tensor cores, by LibTorch's scaled products of rows (cuBLASLt or CUTLASS).
#include <ATen/Functions.h>

#include "core/elementary/low_precision.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/on_gpu/on_gpu.h"
#include "runtime/kernels/tensors/cpu_kernels.h"

namespace lockstep::on_gpu {
namespace {

constexpr auto kE4m3 = static_cast<int64_t>(elementary::NumberFormat::kE4m3);

/// Of what scaled products of rows take: both dimensions that are contiguous are of packs of 16 bytes.
bool are_packs(std::initializer_list<int64_t> sizes) {
  bool all = true;
  for (const int64_t size : sizes) all = all && size > 0 && size % 16 == 0;
  return all;
}

/// Rows of bytes without gaps, of a matrix that may lie column by column.
Tensor contiguous_rows(const Tensor& codes) {
  const auto columns = codes.t();
  if (codes.is_contiguous() || !columns.is_contiguous() || !cuda::has_kernels()) return codes.contiguous();
  auto rows = at::empty(codes.sizes(), codes.options());
  cuda::transpose_bytes(codes.size(1), codes.size(0), columns.const_data_ptr<uint8_t>(),
                        rows.mutable_data_ptr<uint8_t>());
  return rows;
}

/// Codes [rows, k], contiguous, and the scale of each row.
struct ScaledRows {
  Tensor numbers;
  Tensor unscale;  ///< [rows]: what a row's numbers are multiplied by

  ScaledRows(const Tensor& codes, const Tensor& maximum, int64_t format, bool power_of_two)
      : numbers(contiguous_rows(codes).view(format == kE4m3 ? c10::kFloat8_e4m3fn : c10::kFloat8_e5m2)),
        unscale(at::reciprocal(kernels::float8_scales(maximum.reshape({-1}), format, power_of_two))) {}
};

/// left [m, k], right [n, k] -> [m, n] in bfloat16; the sum over k in float32.
Tensor scaled_product(const ScaledRows& left, const ScaledRows& right) {
  return at::_scaled_mm(left.numbers, right.numbers.t(), left.unscale.unsqueeze(1), right.unscale.unsqueeze(0), {}, {},
                        c10::kBFloat16, /*use_fast_accum=*/false);
}

}  // namespace

Tensor float8_linear(const Tensor& x, const Tensor& x_maximum, const Tensor& weight, const Tensor& weight_maximum,
                     int64_t x_format, bool power_of_two, c10::ScalarType dtype) {
  const int64_t k = weight.size(1), n = weight.size(0);
  if (dtype != c10::kBFloat16 || x.numel() == 0 || !are_packs({k, n}))
    return kernels::float8_linear(x, x_maximum, weight, weight_maximum, x_format, power_of_two, dtype);
  const ScaledRows rows(x.reshape({-1, k}), x_maximum, x_format, power_of_two);
  auto sizes = x.sizes().vec();
  sizes.back() = n;
  return scaled_product(rows, {weight, weight_maximum, kE4m3, power_of_two}).view(sizes);
}

/// Each sample has scales of its own, so that it is a product of its own: rounded to bfloat16, and added up in float32.
Tensor float8_weight_gradient(const Tensor& gradient, const Tensor& gradient_maximum, const Tensor& input,
                              const Tensor& input_maximum, int64_t gradient_format, bool power_of_two) {
  const int64_t n = gradient.size(-1), k = input.size(-1), length = gradient.dim() > 1 ? gradient.size(-2) : 1;
  const bool is_served = gradient_maximum.scalar_type() == c10::kBFloat16 && are_packs({length, n, k});
  if (!is_served || gradient.numel() == 0)
    return kernels::float8_weight_gradient(gradient, gradient_maximum, input, input_maximum, gradient_format,
                                           power_of_two);
  const auto left = gradient.contiguous().reshape({-1, length, n}), right = input.contiguous().reshape({-1, length, k});
  const auto left_maxima = gradient_maximum.reshape({-1, n}), right_maxima = input_maximum.reshape({-1, k});
  auto sum = at::zeros({n, k}, gradient.options().dtype(c10::kFloat));
  for (int64_t sample = 0; sample < left.size(0); ++sample)
    sum.add_(scaled_product({left[sample].t(), left_maxima[sample], gradient_format, power_of_two},
                            {right[sample].t(), right_maxima[sample], kE4m3, power_of_two}));
  return sum;
}

}  // namespace lockstep::on_gpu
