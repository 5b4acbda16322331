#pragma once
#include "runtime/kernels/attention/attention_loops.h"

namespace lockstep::kernels {

/// The factors of query row `row` of a query head and `count` keys from `key` on, in the dtype that weights are
/// computed in. REQUIRES: shape.dropout.share > 0.
void dropout_factors(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row, int64_t key, int64_t count,
                     float* factors);
void dropout_factors(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row, int64_t key, int64_t count,
                     double* factors);

}  // namespace lockstep::kernels
