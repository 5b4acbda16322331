#include "runtime/tensor/memory_order.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>

namespace lockstep {
namespace {

/// Dimensions that a shard has in front of the spec's.
size_t node_dims(const TensorSpec& spec, c10::IntArrayRef sizes) { return sizes.size() - spec.sizes.size(); }

/// The spec's dimensions, the outermost first.
c10::SmallVector<size_t, 6> ordered_dims(const TensorSpec& spec) {
  c10::SmallVector<size_t, 6> dims(spec.sizes.size());
  std::iota(dims.begin(), dims.end(), size_t{0});
  std::stable_sort(dims.begin(), dims.end(),
                   [&](size_t left, size_t right) { return spec.strides[left] > spec.strides[right]; });
  return dims;
}

bool is_repeated(const TensorSpec& spec, size_t dim) { return spec.strides[dim] == 0 && spec.sizes[dim] > 1; }

/// Whether the shard has one place in memory for the elements that the spec repeats.
bool repeats_as(const TensorSpec& spec, const at::Tensor& shard) {
  const size_t nodes = node_dims(spec, shard.sizes());
  for (size_t d = 0; d < spec.sizes.size(); ++d)
    if (is_repeated(spec, d) && shard.size(static_cast<int64_t>(nodes + d)) > 1 &&
        shard.stride(static_cast<int64_t>(nodes + d)) != 0)
      return false;
  return true;
}

bool is_cut(const TensorSpec& spec, size_t dim) {
  for (int axis = 0; axis < spec.layout.axis_count(); ++axis)
    if (spec.layout[axis].is_shard(static_cast<int>(dim))) return true;
  return false;
}

}  // namespace

at::Tensor without_repeats(const TensorSpec& spec, at::Tensor shard) {
  if (spec.is_packed()) return shard;
  const size_t nodes = node_dims(spec, shard.sizes());
  for (size_t d = 0; d < spec.sizes.size(); ++d)
    if (is_repeated(spec, d))
      shard = shard.narrow(static_cast<int64_t>(nodes + d), 0,
                           std::min<int64_t>(1, shard.size(static_cast<int64_t>(nodes + d))));
  return shard;
}

bool is_in_memory_order(const TensorSpec& spec, const at::Tensor& given) {
  if (given.numel() <= 1) return true;
  if (spec.is_packed()) return given.is_contiguous();
  if (!repeats_as(spec, given)) return false;
  const auto shard = without_repeats(spec, given);
  const size_t nodes = node_dims(spec, shard.sizes());
  const auto dims = ordered_dims(spec);
  int64_t least = 0;  // what the next dimension's stride has to be, or more where gaps may be
  bool may_have_gaps = true;
  const auto fits = [&](size_t dim, bool is_cut_here) {
    const int64_t size = shard.sizes()[dim], stride = shard.strides()[dim];
    if (size == 1) return true;
    if (stride < least || (stride > least && !may_have_gaps)) return false;
    least = stride * size, may_have_gaps = is_cut_here;
    return true;
  };
  for (size_t d = dims.size(); d-- > 0;)
    if (!fits(nodes + dims[d], is_cut(spec, dims[d]))) return false;
  may_have_gaps = true;  // nodes are never merged with values
  return nodes == 0 || fits(0, false);
}

at::Tensor in_memory_order(const TensorSpec& spec, const at::Tensor& given) {
  if (spec.is_packed()) return given.contiguous();
  const auto shard = without_repeats(spec, given);
  const size_t nodes = node_dims(spec, shard.sizes());
  const auto dims = ordered_dims(spec);
  std::vector<int64_t> strides(shard.sizes().size());
  int64_t inner = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    strides[nodes + dims[d]] = inner;
    inner *= shard.sizes()[nodes + dims[d]];
  }
  if (nodes > 0) strides[0] = inner;
  return at::empty_strided(shard.sizes(), strides, shard.options()).copy_(shard).expand(given.sizes());
}

}  // namespace lockstep
