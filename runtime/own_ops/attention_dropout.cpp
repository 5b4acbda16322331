#include "runtime/own_ops/attention_dropout.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <limits>

#include "runtime/own_ops/parameter_gradients.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

using at::Tensor;

/// [b, h, s, d] -> [b, h * group, s, d]: each head for all queries that share it.
Tensor repeated(const Tensor& heads, int64_t group) {
  if (group == 1) return heads;
  const auto sizes = heads.sizes();
  return heads.unsqueeze(2)
      .expand({sizes[0], sizes[1], group, sizes[2], sizes[3]})
      .reshape({sizes[0], sizes[1] * group, sizes[2], sizes[3]});
}

/// [queries, keys]: where a query may not look, at keys that come after it.
Tensor later_keys(const Tensor& query, const Tensor& key) {
  const auto of = [](const Tensor& rows, int64_t dim) { return at::arange(rows.size(2), at::kLong).unsqueeze(dim); };
  return distribute(of(key, 0) > of(query, 1), Layout::replicated(layout_of(query).mesh()));
}

}  // namespace

Tensor attention_with_dropout(const Tensor& query, const Tensor& key, const Tensor& value, double dropout, bool causal,
                              double scale) {
  const int64_t group = key.size(1) > 0 ? query.size(1) / key.size(1) : 1;
  const auto keys = repeated(widened(key), group), values = repeated(widened(value), group);
  auto scores = at::matmul(widened(query), keys.transpose(-2, -1)) * scale;
  if (causal) scores = scores.masked_fill(later_keys(query, key), -std::numeric_limits<double>::infinity());
  const auto weights = std::get<0>(at::native_dropout(at::softmax(scores, -1), dropout, /*train=*/true));
  return at::matmul(weights, values).to(query.scalar_type());
}

}  // namespace lockstep
