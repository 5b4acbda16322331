#pragma once
#include <ATen/Functions.h>

/// Heads of attention tensors [batch, heads, length, ...], with fewer heads of keys and values than of queries.
namespace lockstep::heads {

/// How many query heads share a key-value head.
inline int64_t group_of(const at::Tensor& query, const at::Tensor& key) {
  return key.size(1) > 0 ? query.size(1) / key.size(1) : 1;
}

/// Key-value heads repeated so that each query head has its own.
inline at::Tensor repeated(const at::Tensor& tensor, int64_t group) {
  return group == 1 ? tensor : tensor.repeat_interleave(group, 1);
}

/// The inverse for gradients: the sum over each group.
inline at::Tensor summed(const at::Tensor& tensor, int64_t group) {
  if (group == 1) return tensor;
  auto sizes = tensor.sizes().vec();
  sizes[1] /= group;
  sizes.insert(sizes.begin() + 2, group);
  return at::sum(tensor.reshape(sizes), {2}, false);
}

/// Memory [batch, length, heads, ...]: how LibTorch's fused kernel writes, and what the rules of attention promise. No
/// copy where it is so already.
inline at::Tensor inside(const at::Tensor& tensor) { return tensor.transpose(1, 2).contiguous().transpose(1, 2); }

}  // namespace lockstep::heads
