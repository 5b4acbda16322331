// Attention on plain CPU tensors: LibTorch's fused kernel, with grouped heads and shifted causal masks around it.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/heads.h"

namespace lockstep::kernels {
namespace {

/// The fused kernel masks from position 0; rows that start later need an explicit mask.
std::optional<Tensor> shifted_mask(const Tensor& query, const Tensor& key, bool causal, int64_t first_row) {
  if (!causal || (first_row == 0 && query.size(2) == key.size(2))) return std::nullopt;
  const auto rows = at::arange(first_row, first_row + query.size(2)).unsqueeze(1), columns = at::arange(key.size(2));
  return at::zeros({query.size(2), key.size(2)}, query.options())
      .masked_fill_(columns > rows, -std::numeric_limits<double>::infinity());
}

bool is_empty(const Tensor& query) { return query.numel() == 0; }

/// The fused kernel has one size of heads.
bool is_fused(const Tensor& query, const Tensor& value) { return query.size(3) == value.size(3); }

/// The fused kernel takes any strides but those of the last dimension.
Tensor readable(const Tensor& tensor) { return tensor.stride(-1) == 1 ? tensor : tensor.contiguous(); }

}  // namespace

std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                     double scale, int64_t first_row) {
  const auto wide = query.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
  auto sizes = query.sizes().vec();
  sizes[3] = value.size(3);
  if (is_empty(query))
    return {at::empty(sizes, query.options()), at::empty({sizes[0], sizes[1], sizes[2]}, query.options().dtype(wide))};
  if (!is_fused(query, value)) return composed::attention(query, key, value, causal, scale, first_row);
  const int64_t group = heads::group_of(query, key);
  const auto mask = shifted_mask(query, key, causal, first_row);
  auto [output, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
      readable(query), heads::repeated(readable(key), group), heads::repeated(readable(value), group), 0.0,
      causal && !mask, mask, scale);
  return {heads::inside(output), heads::inside(log_sum)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row) {
  if (is_empty(query)) return {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value)};
  if (!is_fused(query, value))
    return composed::attention_backward(gradient, query, key, value, output, log_sum, causal, scale, first_row);
  const int64_t group = heads::group_of(query, key);
  const auto mask = shifted_mask(query, key, causal, first_row);
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      readable(gradient), readable(query), heads::repeated(readable(key), group),
      heads::repeated(readable(value), group), readable(output), log_sum, 0.0, causal && !mask, mask, scale);
  return {heads::inside(dq), heads::inside(heads::summed(dk, group)), heads::inside(heads::summed(dv, group))};
}

}  // namespace lockstep::kernels
