// Sharded tensors whose Partial values are spread over all ranks.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "fuzz/calls/sharded_calls.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/domain.h"

namespace lockstep::testing {
namespace {

/// Integers from -3 to 3 that depend on the place, the axis and the coordinate.
at::Tensor noise(const at::Tensor& like, int axis, int64_t coordinate) {
  const auto places = at::arange(like.numel(), at::kLong);
  return (places * 5 + (axis * 3 + coordinate * 11 + 1)).remainder(7).sub(3).reshape(like.sizes()).to(like.options());
}

at::Tensor summand(const at::Tensor& value, int axis, int64_t coordinate, int64_t ranks, bool average) {
  if (coordinate + 1 < ranks) return average ? value + noise(value, axis, coordinate) : noise(value, axis, coordinate);
  auto last = value.clone();
  for (int64_t other = 0; other + 1 < ranks; ++other) last -= noise(value, axis, other);
  return last;
}

/// True where `coordinate` owns the element.
at::Tensor owned(const at::Tensor& value, int axis, int64_t coordinate, int64_t ranks) {
  return at::arange(value.numel(), at::kLong).add(axis).remainder(ranks).eq(coordinate).reshape(value.sizes());
}

at::Tensor part(const at::Tensor& value, int axis, int64_t coordinate, int64_t ranks, Reduction reduction) {
  const auto mine = owned(value, axis, coordinate, ranks);
  if (value.scalar_type() == c10::kBool) return reduction == Reduction::kMax ? value : value.logical_and(mine);
  switch (reduction) {
    case Reduction::kSum:
      return summand(value, axis, coordinate, ranks, false);
    case Reduction::kAvg:
      return summand(value, axis, coordinate, ranks, true);
    case Reduction::kMax:
      return at::where(mine, value, value.scalar_type() == c10::kByte ? at::zeros_like(value) : value - 1);
    case Reduction::kMin:
      return at::where(mine, value, value + 1);
    case Reduction::kProd:
      return at::where(mine, value, at::ones_like(value));
  }
  return value;
}

at::Tensor shard_for(at::Tensor value, const TensorSpec& spec, size_t index) {
  const auto& mesh = spec.layout.mesh();
  const int rank = mesh.local_ranks()[index];
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (spec.layout[axis].is_partial())
      value = part(value, axis, mesh.coordinate(rank, axis), mesh.axis_size(axis), spec.layout[axis].reduction);
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    value = value.narrow(dim, range.start, range.length);
  }
  return value.clone(at::MemoryFormat::Contiguous);  // of no elements, too
}

}  // namespace

at::Tensor scatter(const at::Tensor& plain, const Layout& layout) {
  const PlainTensors guard;
  const auto* spec = layout.mesh().specs().intern(layout, plain.sizes(), plain.scalar_type());
  const auto value = plain.detach().to(storage(*spec));
  Shards shards;
  for (size_t i = 0; i < layout.mesh().local_count(); ++i) shards.push_back(shard_for(value, *spec, i));
  return from_shards(std::move(shards), layout, plain.sizes(), plain.scalar_type());
}

}  // namespace lockstep::testing
