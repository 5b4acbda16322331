#include "runtime/kernels/tensors/canonical_sums.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/sums/integer_sum_loops.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/widened.h"

namespace lockstep::kernels {
namespace {

/// Two integers; at::tensor costs more than they do.
Tensor pair_of(int64_t first, int64_t second) {
  auto out = at::empty({2}, at::kLong);
  auto* words = out.mutable_data_ptr<int64_t>();
  words[0] = first, words[1] = second;
  return out;
}

int64_t product_of(at::IntArrayRef sizes) { return c10::multiply_integers(sizes); }

int64_t node_count(const Summands& s) { return static_cast<int64_t>(cover(s.tree, s.first, s.count).size()); }

std::vector<int64_t> behind_nodes(const Summands& summands, at::IntArrayRef sizes) {
  std::vector<int64_t> all{node_count(summands)};
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

}  // namespace

Tensor ordered_sum(const Tensor& x, int64_t dim, const Summands& summands) {
  const auto wide = widened(x);
  const auto at = static_cast<size_t>(dim);
  auto rest = x.sizes().vec();
  rest.erase(rest.begin() + dim);
  auto out = at::empty(behind_nodes(summands, rest), wide.options());
  const loops::OrderedSum sum{summands.tree, summands.first, product_of(x.sizes().slice(0, at)), summands.count,
                              product_of(x.sizes().slice(at + 1))};
  if (is_on_gpu(wide, "a sum")) {
    cuda::canonical::ordered_sum(sum, floats(wide), to_floats(out));
    return out;
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "ordered_sum", [&] {
    loops::ordered_sum(sum, wide.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>());
  });
  return out;
}

Tensor only_node(const Tensor& nodes) {
  if (nodes.size(0) == 1) return nodes.squeeze(0);
  return at::zeros(nodes.sizes().slice(1), nodes.options());
}

Tensor ordered_exponential_sum(const Tensor& logits, const Tensor& shift, const Summands& summands) {
  const auto wide = widened(logits), s = shift.to(wide.scalar_type()).contiguous();
  auto out = at::empty(behind_nodes(summands, s.sizes()), wide.options());
  const loops::OrderedSum sum{summands.tree, summands.first, s.numel(), summands.count, 1};
  if (is_on_gpu(wide, "a sum of exponentials")) {
    cuda::canonical::ordered_exponential_sum(sum, floats(wide), floats(s), to_floats(out));
    return out;
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "ordered_exponential_sum", [&] {
    loops::ordered_exponential_sum(sum, wide.const_data_ptr<scalar_t>(), s.const_data_ptr<scalar_t>(),
                                   out.mutable_data_ptr<scalar_t>());
  });
  return out;
}

Tensor ordered_norm_gradient(const Tensor& g, const Tensor& x, const Tensor& r, const Summands& summands) {
  const auto wide = widened(x), gradient = g.to(wide.scalar_type()).contiguous();
  const auto reciprocal = r.to(wide.scalar_type()).contiguous();
  auto out = at::empty(behind_nodes(summands, {x.size(0), x.size(-1)}), wide.options());
  const loops::OrderedSum sum{summands.tree, summands.first, x.size(0), summands.count, x.size(-1)};
  if (is_on_gpu(wide, "a norm's gradient")) {
    cuda::canonical::ordered_norm_gradient(sum, floats(gradient), floats(wide), floats(reciprocal), to_floats(out));
    return out;
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "ordered_norm_gradient", [&] {
    loops::ordered_norm_gradient(sum, gradient.const_data_ptr<scalar_t>(), wide.const_data_ptr<scalar_t>(),
                                 reciprocal.const_data_ptr<scalar_t>(), out.mutable_data_ptr<scalar_t>());
  });
  return out;
}

Tensor ordered_table_gradient(const Tensor& gradient, const Tensor& tokens, const Summands& samples, int64_t length,
                              int64_t first_row, int64_t rows) {
  const auto wide = widened(gradient), index = tokens.contiguous();
  const int64_t width = gradient.size(-1);
  auto out = at::empty({node_count(samples), rows, width}, wide.options());
  const loops::TableGradient shape{samples.tree, samples.first, samples.count, length,
                                   width,        index.numel(), first_row,     rows};
  if (is_on_gpu(wide, "a table's gradient")) {
    const auto [sorted, positions] = at::sort(index.flatten(), /*stable=*/true, /*dim=*/0, /*descending=*/false);
    const auto starts = at::searchsorted(sorted, at::arange(first_row, first_row + rows + 1, sorted.options()));
    cuda::canonical::table_gradient(shape, positions.const_data_ptr<int64_t>(), starts.const_data_ptr<int64_t>(),
                                    floats(wide), to_floats(out));
    return out;
  }
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "ordered_table_gradient", [&] {
    loops::table_gradient(shape, index.const_data_ptr<int64_t>(), wide.const_data_ptr<scalar_t>(),
                          out.mutable_data_ptr<scalar_t>());
  });
  return out;
}

Tensor rms_norm_weight_gradient(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal) {
  const int64_t between = x.dim() > 2 ? x.numel() / std::max<int64_t>(x.size(0) * x.size(-1), 1) : 1;
  const auto nodes = ordered_norm_gradient(gradient, x, reciprocal, Summands::all(SumTree::over_elements(between)));
  return only_node(nodes).to(x.scalar_type());
}

namespace {

// Sums of integers are the same in any order: LibTorch's.

Tensor fixed_point_sum_on_gpu(const Tensor& x) {
  const auto is_taken = at::lt(at::abs(x), loops::FixedPoint::kLimit);
  const auto scaled = at::mul(at::where(is_taken, x, 0).to(c10::kDouble), std::ldexp(1.0, loops::FixedPoint::kBits));
  const auto refused = at::sum(at::logical_not(is_taken), c10::kLong);
  return at::stack({at::sum(at::round(scaled).to(c10::kLong)), refused});
}

/// In pieces, whose temporaries are several times as large as they are.
Tensor scaled_squares_on_gpu(const Tensor& x, double scale) {
  constexpr double kLimit = loops::WideSum::kLimit;
  constexpr int64_t kPiece = 1 << 24, kLow = 0xffffffff;
  auto low = at::zeros({}, x.options().dtype(c10::kLong)), high = at::zeros_like(low);
  for (const auto& piece : x.flatten().split(kPiece)) {
    const auto size = at::abs(at::mul(piece.to(c10::kDouble), scale));
    const auto integer = at::round(at::where(at::le(size, kLimit), size, kLimit)).to(c10::kLong);
    const auto square = at::mul(integer, integer);
    low = at::add(low, at::sum(at::bitwise_and(square, kLow)));
    high = at::add(high, at::sum(at::__rshift__(square, 32)));
  }
  return at::stack({at::add(high, at::__rshift__(low, 32)), at::bitwise_and(low, kLow)});
}

}  // namespace

Tensor fixed_point_sum(const Tensor& x) {
  const auto wide = widened(x);
  if (is_on_gpu(wide, "fixed_point_sum")) return fixed_point_sum_on_gpu(wide);
  loops::FixedPoint sum;
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "fixed_point_sum",
                             [&] { sum = loops::fixed_point_sum(wide.numel(), wide.const_data_ptr<scalar_t>()); });
  return pair_of(sum.sum, sum.refused);
}

Tensor absolute_maximum(const Tensor& x) {
  const auto wide = widened(x);
  if (wide.is_cuda())  // exact in every type
    return wide.numel() > 0 ? at::amax(at::abs(wide)) : at::zeros({}, wide.options());
  auto out = at::empty({}, wide.options());
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "absolute_maximum", [&] {
    *out.mutable_data_ptr<scalar_t>() = loops::absolute_maximum(wide.numel(), wide.const_data_ptr<scalar_t>());
  });
  return out;
}

Tensor scaled_squares(const Tensor& x, double scale) {
  const auto wide = widened(x);
  if (is_on_gpu(wide, "scaled_squares")) return scaled_squares_on_gpu(wide, scale);
  loops::WideSum sum;
  AT_DISPATCH_FLOATING_TYPES(wide.scalar_type(), "scaled_squares", [&] {
    sum = loops::scaled_squares(wide.numel(), wide.const_data_ptr<scalar_t>(), scale);
  });
  return pair_of(sum.high, sum.low);
}

}  // namespace lockstep::kernels
