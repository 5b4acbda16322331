#include "runtime/kernels/attention/attention_dropout.h"

#include "rng/fill.h"

namespace lockstep::kernels {
namespace {

void draw(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row, int64_t key, int64_t count,
          rng::ScalarKind kind, void* factors) {
  const auto rows = shape.dropout.draws.at(batch, head);
  const int64_t* draws = rows.data + row * rows.row_stride;
  const double kept = 1 - shape.dropout.share;
  const auto first = static_cast<uint64_t>(draws[2] - (shape.first_row + row) + key);
  rng::fill(factors, kind, rng::bernoulli(kept, kept > 0 ? 1 / kept : 0), {static_cast<uint64_t>(draws[0])},
            static_cast<uint64_t>(draws[1]), {{{count, 0, count, 1}}, first});
}

}  // namespace

void dropout_factors(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row, int64_t key, int64_t count,
                     float* factors) {
  draw(shape, batch, head, row, key, count, rng::ScalarKind::kFloat32, factors);
}

void dropout_factors(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row, int64_t key, int64_t count,
                     double* factors) {
  draw(shape, batch, head, row, key, count, rng::ScalarKind::kFloat64, factors);
}

}  // namespace lockstep::kernels
