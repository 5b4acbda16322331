#include "runtime/kernels/tensors/attention_shape.h"

#include <fmt/ranges.h>

#include "core/error.h"
#include "runtime/kernels/tensors/attention_rows.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

void check(const Tensor& query, const Tensor& key, const Tensor& value) {
  const bool fits = query.dim() == 4 && key.dim() == 4 && value.dim() == 4 && query.size(0) == key.size(0) &&
                    query.size(3) == key.size(3) && key.sizes().slice(0, 3).equals(value.sizes().slice(0, 3)) &&
                    (key.size(1) == 0 ? query.size(1) == 0 : query.size(1) % key.size(1) == 0);
  if (!fits)
    fail<BadInput>("attention of sizes {}, {} and {}", fmt::join(query.sizes(), "x"), fmt::join(key.sizes(), "x"),
                   fmt::join(value.sizes(), "x"));
  if (query.scalar_type() != key.scalar_type() || query.scalar_type() != value.scalar_type())
    fail<BadInput>("attention of {}, {} and {}", c10::toString(query.scalar_type()), c10::toString(key.scalar_type()),
                   c10::toString(value.scalar_type()));
}

}  // namespace

ShapeOfRows shape_of(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, bool causal, double scale,
                     int64_t first_row, const AttentionRows& rows) {
  check(query, key, value);
  const int64_t heads = key.size(1);
  ShapeOfRows shape{{query.size(0), heads, heads > 0 ? query.size(1) / heads : 1, query.size(2), key.size(2),
                     key.size(3), value.size(3), causal, first_row, scale}};
  if (rows.places.defined()) {
    shape.rows.places = checked_places(rows.places, shape.sizes.batch, shape.sizes.rows);
    shape.sizes.places = shape.rows.places.const_data_ptr<int64_t>();
  }
  if (!drops_weights(rows.dropout)) return shape;
  shape.rows.draws = checked_draws(rows.draws, query.sizes(), first_row, key.size(2));
  shape.sizes.dropout = {rows.dropout, read_heads<int64_t>(shape.rows.draws)};
  return shape;
}

}  // namespace lockstep::kernels
