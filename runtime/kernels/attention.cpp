// Attention on plain CPU tensors: LibTorch's fused kernel, with grouped heads and shifted causal masks around it.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "runtime/kernels/cpu_kernels.h"

namespace lockstep::kernels {
namespace {

/// Key-value heads repeated so that each query head has its own.
Tensor repeat_heads(const Tensor& tensor, int64_t group) {
  return group == 1 ? tensor : tensor.repeat_interleave(group, 1);
}

/// The inverse for gradients: the sum over each group.
Tensor sum_groups(const Tensor& tensor, int64_t group) {
  if (group == 1) return tensor;
  auto sizes = tensor.sizes().vec();
  sizes[1] /= group;
  sizes.insert(sizes.begin() + 2, group);
  return at::sum(tensor.reshape(sizes), {2}, false);
}

/// The fused kernel masks from position 0; rows that start later need an explicit mask.
std::optional<Tensor> shifted_mask(const Tensor& query, const Tensor& key, bool causal, int64_t first_row) {
  if (!causal || (first_row == 0 && query.size(2) == key.size(2))) return std::nullopt;
  const auto rows = at::arange(first_row, first_row + query.size(2)).unsqueeze(1), columns = at::arange(key.size(2));
  return at::zeros({query.size(2), key.size(2)}, query.options())
      .masked_fill_(columns > rows, -std::numeric_limits<double>::infinity());
}

int64_t group_of(const Tensor& query, const Tensor& key) { return key.size(1) > 0 ? query.size(1) / key.size(1) : 1; }

bool is_empty(const Tensor& query) { return query.numel() == 0; }

/// Memory [batch, length, heads, ...] for a tensor [batch, heads, length, ...]: how the fused kernel writes, and what
/// the rules of attention promise. No copy where it is so already.
Tensor heads_inside(const Tensor& tensor) { return tensor.transpose(1, 2).contiguous().transpose(1, 2); }

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
  const int64_t group = group_of(query, key);
  const auto mask = shifted_mask(query, key, causal, first_row);
  auto [output, log_sum] = at::_scaled_dot_product_flash_attention_for_cpu(
      readable(query), repeat_heads(readable(key), group), repeat_heads(readable(value), group), 0.0, causal && !mask,
      mask, scale);
  return {heads_inside(output), heads_inside(log_sum)};
}

std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row) {
  if (is_empty(query)) return {at::zeros_like(query), at::zeros_like(key), at::zeros_like(value)};
  const int64_t group = group_of(query, key);
  const auto mask = shifted_mask(query, key, causal, first_row);
  auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      readable(gradient), readable(query), repeat_heads(readable(key), group), repeat_heads(readable(value), group),
      readable(output), log_sum, 0.0, causal && !mask, mask, scale);
  return {heads_inside(dq), heads_inside(sum_groups(dk, group)), heads_inside(sum_groups(dv, group))};
}

}  // namespace lockstep::kernels
