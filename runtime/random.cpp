#include "runtime/random.h"

#include <ATen/Functions.h>

#include <utility>

#include "core/error.h"
#include "rng/fill.h"
#include "runtime/plain_tensors.h"
#include "runtime/sharded_tensor.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

thread_local int64_t current_first_row = 0, current_rows = 0;

rng::ScalarKind kind_of(c10::ScalarType dtype) {
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

}  // namespace

thread_local RandomScope::State RandomScope::current_;

RandomScope::RandomScope(uint64_t seed) : previous_(std::exchange(current_, State{true, seed})) {}
RandomScope::~RandomScope() { current_ = previous_; }

uint64_t RandomScope::seed() {
  if (!current_.open) fail<BadInput>("a random op ran on the mesh outside of a RandomScope, which holds the seed");
  return current_.seed;
}

BatchScope::BatchScope(int64_t first_row, int64_t rows)
    : previous_first_row_(std::exchange(current_first_row, first_row)),
      previous_rows_(std::exchange(current_rows, rows)) {}
BatchScope::~BatchScope() {
  current_first_row = previous_first_row_;
  current_rows = previous_rows_;
}
int64_t BatchScope::first_row() { return current_first_row; }
int64_t BatchScope::rows() { return current_rows; }

at::Tensor draw_local(const TensorSpec& spec, size_t index, const rng::Distribution& distribution, uint64_t seed,
                      uint64_t stream, int64_t first_row) {
  std::vector<int64_t> starts, lengths;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    starts.push_back(range.start);
    lengths.push_back(range.length);
  }
  int64_t row = 1;
  for (size_t dim = 1; dim < spec.sizes.size(); ++dim) row *= spec.sizes[dim];
  auto local = at::empty(lengths, at::TensorOptions().dtype(spec.dtype));
  rng::fill(local.mutable_data_ptr(), kind_of(spec.dtype), distribution, rng::Key{seed}, stream,
            rng::Slice::box(spec.sizes, starts, lengths, static_cast<uint64_t>(first_row * row)));
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
