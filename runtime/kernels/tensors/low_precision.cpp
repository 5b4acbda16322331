// Numbers of few bits and the Hadamard transform on plain tensors, of a CPU or a GPU: the same bits.
#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/cuda/cuda_kernels.h"
#include "runtime/kernels/rows/hadamard_loops.h"
#include "runtime/kernels/rows/low_precision_loops.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/row_parts.h"

namespace lockstep::kernels {
namespace {

using loops::NumberFormat;

constexpr int64_t kMostInRow = 2048;
constexpr auto kE4m3 = static_cast<int64_t>(NumberFormat::kE4m3);

NumberFormat format_of(int64_t number) { return static_cast<NumberFormat>(number); }

Tensor floats(const Tensor& x) { return x.to(c10::kFloat).contiguous(); }

/// In the dtype that a result has in the domain of float64.
Tensor as_wide_as(const Tensor& x, const Tensor& result) {
  return x.scalar_type() == c10::kDouble ? result.to(c10::kDouble) : result;
}

/// REQUIRES: `maximum` is where x is.
Tensor scales(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two) {
  LOCKSTEP_CHECK_EQ(maximum.is_cuda(), x.is_cuda());
  return float8_scales(maximum, format, power_of_two);
}

/// x times its scales, as numbers of the grid.
Tensor on_grid(const Tensor& x, const Tensor& scale, NumberFormat format) {
  auto scaled = at::mul(x.to(c10::kFloat), scale).contiguous();
  auto* const data = scaled.mutable_data_ptr<float>();
  if (scaled.is_cuda()) {
    cuda::canonical::nearest(format, scaled.numel(), data, data);
    return scaled;
  }
  parallel_for(0, scaled.numel(), kGrain,
               [=](int64_t begin, int64_t end) { loops::nearest(format, end - begin, data + begin, data + begin); });
  return scaled;
}

/// x [.., .., ..] beside its scales, dimensions that one scale is of all of and others taken together; none: they are
/// of more than three kinds.
std::optional<cuda::ScaledRows> scaled_rows(c10::IntArrayRef sizes, c10::IntArrayRef scale_sizes) {
  std::vector<int64_t> lengths;
  std::vector<bool> shared;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const size_t missing = sizes.size() - scale_sizes.size();
    const bool is_shared = d < missing || (scale_sizes[d - missing] == 1 && sizes[d] != 1);
    if (shared.empty() || shared.back() != is_shared) lengths.push_back(1), shared.push_back(is_shared);
    lengths.back() *= sizes[d];
  }
  if (lengths.size() > 3) return std::nullopt;
  if (lengths.size() < 3 && !lengths.empty() && shared.back()) {  // more rows, for more warps
    lengths.push_back(lengths.back()), shared.push_back(true);
    while (lengths.back() % 2 == 0 && lengths.back() > kMostInRow) lengths.back() /= 2;
    if (lengths.back() > 0) lengths[lengths.size() - 2] /= lengths.back();
  }
  lengths.insert(lengths.begin(), 3 - lengths.size(), 1), shared.insert(shared.begin(), 3 - shared.size(), true);
  const int64_t element = shared[2] ? 0 : 1, row = shared[2] ? 1 : lengths[2];
  const int64_t outer = row * (shared[1] ? 1 : lengths[1]);
  return cuda::ScaledRows{lengths[0], lengths[1], lengths[2], shared[0] ? 0 : outer, shared[1] ? 0 : row, element};
}

/// On a GPU.
std::optional<Tensor> codes_in_one_pass(const Tensor& x, const Tensor& scale, int64_t format) {
  const bool is_float = x.scalar_type() == c10::kFloat;
  const auto rows = scaled_rows(x.sizes(), scale.sizes());
  if (!rows || !(is_float || x.scalar_type() == c10::kBFloat16)) return std::nullopt;
  const auto in = x.contiguous();
  auto out = at::empty(x.sizes(), x.options().dtype(c10::kByte));
  cuda::float8_codes(is_float ? cuda::Element::kFloat32 : cuda::Element::kBFloat16, format_of(format), *rows,
                     in.const_data_ptr(), scale.const_data_ptr<float>(), out.mutable_data_ptr<uint8_t>());
  return out;
}

Tensor as_rows(const Tensor& x) { return x.flatten(0, -2); }

}  // namespace

Tensor float8_scales(const Tensor& maximum, int64_t format, bool power_of_two) {
  const auto maxima = floats(maximum);
  auto out = at::empty_like(maxima);
  const auto of = maxima.is_cuda() ? cuda::canonical::scales : loops::scales;
  of(format_of(format), power_of_two, maxima.numel(), maxima.const_data_ptr<float>(), out.mutable_data_ptr<float>());
  return out;
}

Tensor quantize(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two) {
  const auto scale = scales(x, maximum, format, power_of_two);
  return as_wide_as(x, on_grid(x, scale, format_of(format)).div_(scale));
}

Tensor float8_codes(const Tensor& x, const Tensor& maximum, int64_t format, bool power_of_two) {
  const auto scale = scales(x, maximum, format, power_of_two);
  if (x.is_cuda())
    if (const auto codes = codes_in_one_pass(x, scale, format)) return *codes;
  const auto numbers = on_grid(x, scale, format_of(format));
  auto out = at::empty(x.sizes(), x.options().dtype(c10::kByte));
  const auto* from = numbers.const_data_ptr<float>();
  auto* const to = out.mutable_data_ptr<uint8_t>();
  if (x.is_cuda()) {
    cuda::canonical::float8_codes(format_of(format), out.numel(), from, to);
    return out;
  }
  parallel_for(0, out.numel(), kGrain, [=](int64_t begin, int64_t end) {
    loops::float8_codes(format_of(format), end - begin, from + begin, to + begin);
  });
  return out;
}

Tensor float8_numbers(const Tensor& codes, const Tensor& maximum, int64_t format, bool power_of_two) {
  const auto bytes = codes.contiguous(), out = at::empty(codes.sizes(), codes.options().dtype(c10::kFloat));
  const auto* from = bytes.const_data_ptr<uint8_t>();
  auto* const to = out.mutable_data_ptr<float>();
  const auto convert = [=](int64_t begin, int64_t end) {
    loops::float8_numbers(format_of(format), end - begin, from + begin, to + begin);
  };
  if (out.is_cuda())
    cuda::canonical::float8_numbers(format_of(format), out.numel(), from, to);
  else
    parallel_for(0, out.numel(), kGrain, convert);
  return as_wide_as(maximum, out.div_(scales(codes, maximum, format, power_of_two)));
}

Tensor float8_linear(const Tensor& x, const Tensor& x_maximum, const Tensor& weight, const Tensor& weight_maximum,
                     int64_t x_format, bool power_of_two, c10::ScalarType dtype) {
  const auto numbers = float8_numbers(x, x_maximum, x_format, power_of_two);
  return at::linear(numbers, float8_numbers(weight, weight_maximum, kE4m3, power_of_two)).to(dtype);
}

Tensor float8_weight_gradient(const Tensor& gradient, const Tensor& gradient_maximum, const Tensor& input,
                              const Tensor& input_maximum, int64_t gradient_format, bool power_of_two) {
  const auto rows = as_rows(float8_numbers(gradient, gradient_maximum, gradient_format, power_of_two));
  return at::mm(rows.t(), as_rows(float8_numbers(input, input_maximum, kE4m3, power_of_two)));
}

Tensor quantize_blocks(const Tensor& x, int64_t dim, int64_t format) {
  const auto wide = floats(x), out = at::empty_like(wide);
  const auto at = static_cast<size_t>(dim < 0 ? dim + x.dim() : dim);
  const auto sizes = x.sizes();
  const loops::BlockShape shape{c10::multiply_integers(sizes.slice(0, at)), sizes[at],
                                c10::multiply_integers(sizes.slice(at + 1))};
  const auto* from = wide.const_data_ptr<float>();
  auto* const to = out.mutable_data_ptr<float>();
  if (wide.is_cuda()) {
    cuda::canonical::nearest_in_blocks(format_of(format), shape, from, to);
    return as_wide_as(x, out);
  }
  by_parts({shape.outer, shape.length * shape.inner}, [=](loops::Rows part, int64_t first) {
    const int64_t start = first * part.width;
    loops::nearest_in_blocks(format_of(format), {part.count, shape.length, shape.inner}, from + start, to + start);
  });
  return as_wide_as(x, out);
}

Tensor hadamard_transform(const Tensor& x, double scale) {
  const auto wide = x.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  const auto contiguous = at::MemoryFormat::Contiguous;
  // A GPU's is in place.
  const auto from = x.is_cuda() ? x.to(wide, false, /*copy=*/true, contiguous) : x.to(wide).contiguous();
  const auto out = x.is_cuda() ? from : at::empty_like(from);
  AT_DISPATCH_FLOATING_TYPES(wide, "hadamard_transform", [&] {
    const auto all = rows_of(out);
    const auto factor = static_cast<scalar_t>(scale);
    const auto* source = from.const_data_ptr<scalar_t>();
    auto* const data = out.mutable_data_ptr<scalar_t>();
    if (out.is_cuda()) return cuda::canonical::hadamard(all.count, all.width, factor, data);
    by_written_parts(all, data, [=](loops::Rows part, int64_t first) {
      scalar_t* const rows = data + first * part.width;
      std::copy_n(source + first * part.width, part.count * part.width, rows);
      loops::hadamard(part.count, part.width, factor, rows);
    });
  });
  return out.to(x.scalar_type());
}

}  // namespace lockstep::kernels
