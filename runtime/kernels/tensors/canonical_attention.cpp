#include "runtime/kernels/tensors/canonical_attention.h"

#include <ATen/Functions.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "runtime/kernels/attention/attention_loops.h"
#include "runtime/kernels/tensors/parallel_workers.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

c10::ScalarType wide_of(const Tensor& tensor) {
  return tensor.scalar_type() == c10::kDouble ? c10::kDouble : c10::kFloat;
}

/// [batch, heads, length, ...] with memory [batch, length, heads, ...].
Tensor empty_heads(std::vector<int64_t> sizes, const Tensor& like) {
  std::swap(sizes[1], sizes[2]);
  return at::empty(sizes, like.options().dtype(wide_of(like))).transpose(1, 2);
}

template <class T>
HeadTensor<const T> read(const Tensor& tensor) {
  return {static_cast<const T*>(tensor.const_data_ptr()), tensor.stride(0), tensor.stride(1), tensor.stride(2),
          tensor.dim() > 3 ? tensor.stride(3) : 1};
}
template <class T>
HeadTensor<T> write(const Tensor& tensor) {
  return {tensor.mutable_data_ptr<T>(), tensor.stride(0), tensor.stride(1), tensor.stride(2), 1};
}

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

AttentionShape shape_of(const Tensor& query, const Tensor& key, const Tensor& value, bool causal, double scale,
                        int64_t first_row) {
  check(query, key, value);
  const int64_t heads = key.size(1);
  return {query.size(0), heads,       heads > 0 ? query.size(1) / heads : 1,
          query.size(2), key.size(2), key.size(3),
          value.size(3), causal,      first_row,
          scale};
}

Workers workers_for(const AttentionShape& shape) {
  return parallel_workers(static_cast<double>(shape.batch * shape.heads * shape.group) *
                          static_cast<double>(shape.rows * shape.keys) *
                          static_cast<double>(shape.depth + shape.width));
}

/// f with an Input and a T as arguments, by the dtype of `tensor`.
template <class Function>
void dispatch(const Tensor& tensor, const Function& f) {
  switch (tensor.scalar_type()) {
    case c10::kFloat:
      return f(float{}, float{});
    case c10::kDouble:
      return f(double{}, double{});
    case c10::kBFloat16:
      return f(Bfloat16{}, float{});
    default:
      fail<BadInput>("canonical attention takes float32, float64 and bfloat16, not {}",
                     c10::toString(tensor.scalar_type()));
  }
}

}  // namespace

std::tuple<Tensor, Tensor> canonical_attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                               double scale, int64_t first_row) {
  const auto shape = shape_of(query, key, value, causal, scale, first_row);
  const Tensor output = empty_heads({query.size(0), query.size(1), query.size(2), value.size(3)}, query);
  const Tensor log_sum = empty_heads({query.size(0), query.size(1), query.size(2)}, query);
  dispatch(query, [&]<class Input, class T>(Input, T) {
    attention_forward<Input, T>(
        {shape, read<Input>(query), read<Input>(key), read<Input>(value), write<T>(output), write<T>(log_sum)},
        workers_for(shape));
  });
  return {output.to(query.scalar_type()), log_sum};
}

std::tuple<Tensor, Tensor, Tensor> canonical_attention_backward(const Tensor& gradient, const Tensor& query,
                                                                const Tensor& key, const Tensor& value,
                                                                const Tensor& output, const Tensor& log_sum,
                                                                bool causal, double scale, int64_t first_row,
                                                                const ContractedRange& rows) {
  const auto shape = shape_of(query, key, value, causal, scale, first_row);
  const int64_t all_rows = rows.total < 0 ? shape.rows : rows.total;
  const auto nodes = static_cast<int64_t>(nodes_of(rows.elements(shape.rows)).size());
  const Tensor dq = empty_heads(query.sizes().vec(), query);
  // Nodes outside of everything.
  const auto empty_nodes = [&](const Tensor& like) {
    return at::empty({nodes, like.size(0), like.size(2), like.size(1), like.size(3)},
                     like.options().dtype(wide_of(like)))
        .transpose(2, 3);
  };
  const Tensor dk = empty_nodes(key), dv = empty_nodes(value);
  dispatch(query, [&]<class Input, class T>(Input, T) {
    const auto node = [](const Tensor& gradients) {
      return HeadTensor<T>{gradients.mutable_data_ptr<T>(), gradients.stride(1), gradients.stride(2),
                           gradients.stride(3), 1};
    };
    attention_backward<Input, T>(
        {shape, read<Input>(gradient), read<Input>(query), read<Input>(key), read<Input>(value), read<Input>(output),
         read<T>(log_sum), rows.first, all_rows, write<T>(dq), node(dk), node(dv), dk.stride(0), dv.stride(0)},
        workers_for(shape));
  });
  const auto dtype = query.scalar_type();
  if (rows.stays_open()) return {dq.to(dtype), dk, dv};
  return {dq.to(dtype), dk.select(0, 0).to(dtype), dv.select(0, 0).to(dtype)};
}

}  // namespace lockstep::kernels
