#include "runtime/tensor/memory_order.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

/// Strides of a dense tensor of the shard's sizes.
std::vector<int64_t> dense_strides(const TensorSpec& spec, c10::IntArrayRef sizes) {
  const size_t nodes = sizes.size() - spec.strides.size();  // dimensions in front of the spec's
  std::vector<size_t> dims(spec.strides.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  std::stable_sort(dims.begin(), dims.end(),
                   [&](size_t left, size_t right) { return spec.strides[left] > spec.strides[right]; });
  std::vector<int64_t> strides(sizes.size());
  int64_t inner = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[nodes + dims[d]] = inner;
    inner *= sizes[nodes + dims[d]];
  }
  if (nodes > 0) strides[0] = inner;
  return strides;
}

bool repeats_elements(const TensorSpec& spec) {
  for (size_t d = 0; d < spec.sizes.size(); ++d)
    if (spec.strides[d] == 0 && spec.sizes[d] > 1) return true;
  return false;
}

}  // namespace

bool is_in_memory_order(const TensorSpec& spec, const at::Tensor& shard) {
  if (shard.numel() == 0 || repeats_elements(spec)) return true;
  const auto strides = dense_strides(spec, shard.sizes());
  for (size_t d = 0; d < strides.size(); ++d)
    if (shard.sizes()[d] > 1 && shard.strides()[d] != strides[d]) return false;
  return true;
}

at::Tensor in_memory_order(const TensorSpec& spec, const at::Tensor& shard) {
  return at::empty_strided(shard.sizes(), dense_strides(spec, shard.sizes()), shard.options()).copy_(shard);
}

}  // namespace lockstep
