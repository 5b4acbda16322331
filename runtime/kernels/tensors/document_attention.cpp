// Attention whose query rows bring along where their document begins, and which weights are dropped, on plain CPU
// tensors: canonical numerics' kernels, but for float16, which they do not take.
#include "runtime/kernels/tensors/canonical_attention.h"
#include "runtime/kernels/tensors/composed.h"
#include "runtime/kernels/tensors/cpu_kernels.h"

namespace lockstep::kernels {

std::tuple<Tensor, Tensor> document_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const Tensor& places, const std::optional<Tensor>& draws, double dropout,
                                              double scale, int64_t first_row) {
  if (query.scalar_type() == c10::kHalf)
    return composed::document_attention(query, key, value, places, draws, dropout, scale, first_row);
  return canonical_attention(query, key, value, /*causal=*/true, scale, first_row,
                             {places, draws.value_or(Tensor()), dropout});
}

std::tuple<Tensor, Tensor, Tensor> document_attention_backward(const Tensor& gradient, const Tensor& query,
                                                               const Tensor& key, const Tensor& value,
                                                               const Tensor& output, const Tensor& log_sum,
                                                               const Tensor& places, const std::optional<Tensor>& draws,
                                                               double dropout, double scale, int64_t first_row) {
  if (query.scalar_type() == c10::kHalf)
    return composed::document_attention_backward(gradient, query, key, value, output, log_sum, places, draws, dropout,
                                                 scale, first_row);
  return canonical_attention_backward(gradient, query, key, value, output, log_sum, /*causal=*/true, scale, first_row,
                                      {}, {places, draws.value_or(Tensor()), dropout});
}

}  // namespace lockstep::kernels
