#include "runtime/context/random.h"

#include <ATen/Functions.h>

#include <utility>

#include "core/error.h"
#include "rng/cuda_fill.h"
#include "rng/fill.h"
#include "runtime/context/world.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

rng::ScalarKind scalar_kind(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kFloat:
      return rng::ScalarKind::kFloat32;
    case c10::kDouble:
      return rng::ScalarKind::kFloat64;
    case c10::kBFloat16:
      return rng::ScalarKind::kBFloat16;
    case c10::kHalf:
      return rng::ScalarKind::kFloat16;
    case c10::kLong:
      return rng::ScalarKind::kInt64;
    case c10::kBool:
      return rng::ScalarKind::kBool;
    default:
      fail<BadInput>("random values of dtype {} cannot be drawn", c10::toString(dtype));
  }
}

void fill_random(const at::Tensor& part, const rng::Distribution& distribution, uint64_t seed, uint64_t stream,
                 const rng::Subarray& subarray) {
  const auto kind = scalar_kind(part.scalar_type());
  const rng::Key key{seed};
  if (part.is_cuda())
    return rng::cuda_fill(part.mutable_data_ptr(), kind, distribution, key, stream, subarray, /*cuda_stream=*/nullptr);
  rng::fill(part.mutable_data_ptr(), kind, distribution, key, stream, subarray);
}

at::Tensor draw_local(const TensorSpec& spec, size_t index, const rng::Distribution& distribution, uint64_t seed,
                      uint64_t stream, const BatchRows& rows) {
  return draw_local(spec, spec.dtype, index, distribution, seed, stream, rows);
}

at::Tensor draw_local(const TensorSpec& spec, c10::ScalarType dtype, size_t index,
                      const rng::Distribution& distribution, uint64_t seed, uint64_t stream, const BatchRows& rows) {
  std::vector<int64_t> starts, lengths;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    starts.push_back(range.start);
    lengths.push_back(range.length);
  }
  auto local = at::empty(lengths, at::dtype(dtype).device(spec.layout.mesh().world().shard_device()));
  const auto fill = [&](const at::Tensor& part, int64_t shift) {
    fill_random(part, distribution, seed, stream,
                rng::Subarray::of(spec.sizes, {starts, lengths}, static_cast<uint64_t>(shift)));
  };
  if (spec.sizes.empty()) fill(local, 0);
  if (spec.sizes.empty() || local.numel() == 0) return local;
  const int64_t first = starts[0], row = spec.element_count() / spec.sizes[0];
  for (const auto& run : rows.seen_by(spec.sizes[0]).runs({first, lengths[0]})) {
    starts[0] = run.rows.start;
    lengths[0] = run.rows.length;
    fill(local.narrow(0, run.rows.start - first, run.rows.length), run.shift * row);
  }
  return local;
}

at::Tensor draw(const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype,
                const rng::Distribution& distribution, uint64_t seed, uint64_t stream) {
  const PlainTensors guard;
  const auto* spec = layout.mesh().specs().intern(layout, sizes, dtype);
  if (spec->any_partial) fail<BadInput>("random values cannot be drawn as a Partial ({})", layout.text());
  const auto& world = layout.mesh().world();
  Shards shards;
  for (size_t i = 0; i < layout.mesh().local_count(); ++i)
    shards.push_back(world.meta()
                         ? at::empty(spec->local_sizes[i],
                                     at::TensorOptions().dtype(stored(world.domain(), dtype)).device(c10::kMeta))
                         : into_domain(world.domain(), draw_local(*spec, i, distribution, seed, stream)));
  return make_sharded(spec, std::move(shards));
}

}  // namespace lockstep
