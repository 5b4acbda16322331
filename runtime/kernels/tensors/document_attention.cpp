// Attention inside of documents on plain CPU tensors: canonical numerics' kernels, but for float16, which they do not
// take.
#include <fmt/format.h>

#include "core/error.h"
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"
#include "runtime/kernels/tensors/document_places.h"

namespace lockstep::kernels {
namespace {

/// More tokens than any sample has; differences of places and rows do not overflow.
constexpr int64_t kMost = int64_t{1} << 48;

}  // namespace

at::Tensor checked_places(const at::Tensor& places, int64_t batch, int64_t rows) {
  if (places.scalar_type() != c10::kLong || places.dim() != 2 || places.size(0) != batch || places.size(1) != rows)
    fail<BadInput>("attention in documents: places are {} {}, expected Long [{}, {}]",
                   c10::toString(places.scalar_type()), c10::str(places.sizes()), batch, rows);
  auto dense = places.contiguous();
  const auto* data = dense.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < batch * rows; ++i) {
    const bool is_known = data[i] >= 0 && data[i] < kMost;
    if (is_known && (i % rows == 0 || data[i] <= data[i - 1] + 1)) continue;
    fail<BadInput>(
        "attention in documents: row {} of sample {} (of those here) has place {} in its document, expected one from 0 "
        "to {}",
        i % rows, i / rows, data[i], i % rows == 0 ? kMost - 1 : data[i - 1] + 1);
  }
  return dense;
}

std::tuple<Tensor, Tensor> document_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const Tensor& places, double scale, int64_t first_row) {
  if (query.scalar_type() == c10::kHalf)
    return composed::document_attention(query, key, value, places, scale, first_row);
  return canonical_attention(query, key, value, /*causal=*/true, scale, first_row, places);
}

std::tuple<Tensor, Tensor, Tensor> document_attention_backward(const Tensor& gradient, const Tensor& query,
                                                               const Tensor& key, const Tensor& value,
                                                               const Tensor& output, const Tensor& log_sum,
                                                               const Tensor& places, double scale, int64_t first_row) {
  if (query.scalar_type() == c10::kHalf)
    return composed::document_attention_backward(gradient, query, key, value, output, log_sum, places, scale,
                                                 first_row);
  return canonical_attention_backward(gradient, query, key, value, output, log_sum, /*causal=*/true, scale, first_row,
                                      {}, places);
}

}  // namespace lockstep::kernels
