#include "runtime/kernels/tensors/canonical_attention.h"

#include <ATen/Functions.h>
#include <fmt/ranges.h>

#include "core/error.h"
#include "runtime/kernels/cuda/canonical/canonical_kernels.h"
#include "runtime/kernels/tensors/attention_shape.h"
#include "runtime/kernels/tensors/gpu_numbers.h"
#include "runtime/kernels/tensors/parallel_workers.h"

namespace lockstep::kernels {
namespace {

using at::Tensor;

/// [batch, heads, length, ...] with memory [batch, length, heads, ...].
Tensor empty_heads(std::vector<int64_t> sizes, const Tensor& like) {
  std::swap(sizes[1], sizes[2]);
  return at::empty(sizes, like.options().dtype(wide_of(like))).transpose(1, 2);
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

void require_small_heads(const AttentionShape& shape) {
  if (std::max(shape.depth, shape.width) > cuda::canonical::kMostHeadElements)
    fail<BadInput>("canonical attention on a GPU takes heads of at most {} elements, not {} and {}",
                   cuda::canonical::kMostHeadElements, shape.depth, shape.width);
}

/// On the device that has the queries.
template <class Input, class T>
void forward(const AttentionForward<Input, T>& work, const Tensor& query) {
  if constexpr (std::is_same_v<T, float>)
    if (query.is_cuda()) return require_small_heads(work.shape), cuda::canonical::attention_forward(work);
  (void)is_on_gpu(query, "attention");
  attention_forward<Input, T>(work, workers_for(work.shape));
}

template <class Input, class T>
void backward(const AttentionBackward<Input, T>& work, const Tensor& query) {
  if constexpr (std::is_same_v<T, float>)
    if (query.is_cuda()) {
      require_small_heads(work.shape);
      const Tensor shared = at::empty(query.sizes().slice(0, 3), query.options().dtype(c10::kFloat));
      return cuda::canonical::attention_backward(work, to_floats(shared));
    }
  (void)is_on_gpu(query, "attention_backward");
  attention_backward<Input, T>(work, workers_for(work.shape));
}

}  // namespace

std::tuple<Tensor, Tensor> canonical_attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                               double scale, int64_t first_row, const AttentionRows& with) {
  const auto given = shape_of(query, key, value, causal, scale, first_row, with);
  const auto& shape = given.sizes;
  const Tensor output = empty_heads({query.size(0), query.size(1), query.size(2), value.size(3)}, query);
  const Tensor log_sum = empty_heads({query.size(0), query.size(1), query.size(2)}, query);
  dispatch(query, [&]<class Input, class T>(Input, T) {
    forward<Input, T>({shape, read_heads<Input>(query), read_heads<Input>(key), read_heads<Input>(value),
                       write_heads<T>(output), write_heads<T>(log_sum)},
                      query);
  });
  return {output.to(query.scalar_type()), log_sum};
}

namespace {

/// What a backward reads; gradients of keys and values are nodes over query rows.
struct BackwardInputs {
  const Tensor &gradient, &query, &key, &value, &output, &log_sum;
  AttentionShape shape;
  ContractedRange rows;
  Tensor query_before = {};
};

template <class Input, class T>
AttentionBackward<Input, T> backward_work(const BackwardInputs& in, const Tensor& dq, const Tensor& dk,
                                          const Tensor& dv) {
  const auto node = [](const Tensor& gradients) {
    return HeadTensor<T>{gradients.mutable_data_ptr<T>(), gradients.stride(1), gradients.stride(2), gradients.stride(3),
                         1};
  };
  AttentionBackward<Input, T> work{in.shape,
                                   read_heads<Input>(in.gradient),
                                   read_heads<Input>(in.query),
                                   read_heads<Input>(in.key),
                                   read_heads<Input>(in.value),
                                   read_heads<Input>(in.output),
                                   read_heads<T>(in.log_sum),
                                   in.rows.first,
                                   in.rows.total < 0 ? in.shape.rows : in.rows.total,
                                   write_heads<T>(dq),
                                   node(dk),
                                   node(dv),
                                   dk.stride(0),
                                   dv.stride(0)};
  if (in.query_before.defined()) work.query_before = read_heads<T>(in.query_before);
  return work;
}

std::tuple<Tensor, Tensor, Tensor> gradients_of(const BackwardInputs& in) {
  const auto nodes = static_cast<int64_t>(nodes_of(in.rows.elements(in.shape.rows)).size());
  const Tensor dq = empty_heads(in.query.sizes().vec(), in.query);
  // Nodes outside of everything.
  const auto empty_nodes = [&](const Tensor& like) {
    return at::empty({nodes, like.size(0), like.size(2), like.size(1), like.size(3)},
                     like.options().dtype(wide_of(like)))
        .transpose(2, 3);
  };
  const Tensor dk = empty_nodes(in.key), dv = empty_nodes(in.value);
  dispatch(in.query, [&]<class Input, class T>(Input, T) {
    backward<Input, T>(backward_work<Input, T>(in, dq, dk, dv), in.query);
  });
  return {dq, dk, dv};
}

static_assert(kAttentionWeights == kWeightsOfState && kAttentionBlock == kKeyBlock && kAttentionDraws == kDrawsOfRow);

void check_state(const Tensor& sums, const Tensor& weights, c10::IntArrayRef queries, c10::ScalarType dtype) {
  const auto rows = queries.slice(0, 3);
  const bool fits = sums.dim() == 4 && weights.dim() == 4 && sums.sizes().slice(0, 3).equals(rows) &&
                    weights.sizes().slice(0, 3).equals(rows) && weights.size(3) == kWeightsOfState &&
                    sums.scalar_type() == dtype && weights.scalar_type() == dtype;
  if (!fits)
    fail<BadInput>("attention over blocks of keys: sums {} {} and weights {} {} of queries {}, expected {} [..., {}]",
                   c10::toString(sums.scalar_type()), fmt::join(sums.sizes(), "x"),
                   c10::toString(weights.scalar_type()), fmt::join(weights.sizes(), "x"), fmt::join(queries, "x"),
                   c10::toString(dtype), kWeightsOfState);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> canonical_attention_backward(const Tensor& gradient, const Tensor& query,
                                                                const Tensor& key, const Tensor& value,
                                                                const Tensor& output, const Tensor& log_sum,
                                                                bool causal, double scale, int64_t first_row,
                                                                const ContractedRange& rows,
                                                                const AttentionRows& with) {
  const auto given = shape_of(query, key, value, causal, scale, first_row, with);
  const auto& shape = given.sizes;
  const auto [dq, dk, dv] = gradients_of({gradient, query, key, value, output, log_sum, shape, rows});
  const auto dtype = query.scalar_type();
  if (rows.stays_open()) return {dq.to(dtype), dk, dv};
  return {dq.to(dtype), dk.select(0, 0).to(dtype), dv.select(0, 0).to(dtype)};
}

namespace {

std::tuple<Tensor, Tensor> over_block(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& sums,
                                      const Tensor& weights, const AttentionShape& shape) {
  check_state(sums, weights, query.sizes(), wide_of(query));
  if (sums.size(3) != value.size(3))
    fail<BadInput>("attention over blocks of keys: sums of {} elements, values of {}", sums.size(3), value.size(3));
  const Tensor before[] = {sums.contiguous(), weights.contiguous()};
  const Tensor after[] = {at::empty_like(before[0]), at::empty_like(before[1])};
  dispatch(query, [&]<class Input, class T>(Input, T) {
    forward<Input, T>({shape,
                       read_heads<Input>(query),
                       read_heads<Input>(key),
                       read_heads<Input>(value),
                       {},
                       {},
                       {read_heads<T>(before[0]), read_heads<T>(before[1])},
                       {write_heads<T>(after[0]), write_heads<T>(after[1])}},
                      query);
  });
  return {after[0], after[1]};
}

}  // namespace

std::tuple<Tensor, Tensor> attention_over(const Tensor& query, const Tensor& key, const Tensor& value,
                                          const Tensor& sums, const Tensor& weights, bool causal, double scale,
                                          int64_t first_row) {
  return over_block(query, key, value, sums, weights, shape_of(query, key, value, causal, scale, first_row).sizes);
}

std::tuple<Tensor, Tensor> document_attention_over(const Tensor& query, const Tensor& key, const Tensor& value,
                                                   const Tensor& sums, const Tensor& weights, const Tensor& places,
                                                   const std::optional<Tensor>& draws, double dropout, double scale,
                                                   int64_t first_row) {
  const auto given =
      shape_of(query, key, value, /*causal=*/true, scale, first_row, {places, draws.value_or(Tensor()), dropout});
  const auto& shape = given.sizes;
  return over_block(query, key, value, sums, weights, shape);
}

/// The last keys are none: of what has a place for one.
std::tuple<Tensor, Tensor> attention_result(const Tensor& sums, const Tensor& weights) {
  check_state(sums, weights, sums.sizes(), wide_of(sums));
  const int64_t batch = sums.size(0), heads = sums.size(1), rows = sums.size(2), width = sums.size(3);
  const Tensor output = empty_heads({batch, heads, rows, width}, sums);
  const Tensor log_sum = empty_heads({batch, heads, rows}, sums);
  const Tensor query = at::zeros({batch, heads, rows, 1}, sums.options());
  const Tensor key = at::zeros({batch, heads, 1, 1}, sums.options());
  const Tensor value = at::zeros({batch, heads, 1, width}, sums.options());
  auto shape = shape_of(query, key, value, false, 1, 0).sizes;
  shape.keys = 0;
  const Tensor before[] = {sums.contiguous(), weights.contiguous()};
  dispatch(sums, [&]<class Input, class T>(Input, T) {
    forward<Input, T>({shape,
                       read_heads<Input>(query),
                       read_heads<Input>(key),
                       read_heads<Input>(value),
                       write_heads<T>(output),
                       write_heads<T>(log_sum),
                       {read_heads<T>(before[0]), read_heads<T>(before[1])}},
                      query);
  });
  return {output, log_sum};
}

namespace {

std::tuple<Tensor, Tensor, Tensor> gradients_over_block(BackwardInputs in, const Tensor& query_gradient, int64_t first,
                                                        int64_t all_rows) {
  if (!query_gradient.sizes().equals(in.query.sizes()) || query_gradient.scalar_type() != wide_of(in.query))
    fail<BadInput>("attention over blocks of keys: the query's gradient is {} {}, expected {} {}",
                   c10::toString(query_gradient.scalar_type()), fmt::join(query_gradient.sizes(), "x"),
                   c10::toString(wide_of(in.query)), fmt::join(in.query.sizes(), "x"));
  const auto tree = SumTree::over_elements(all_rows);
  if (first < 0 || first + in.shape.rows > all_rows || !tree.is_boundary(first) ||
      !tree.is_boundary(first + in.shape.rows))
    fail<BadInput>("attention over blocks of keys: query rows {} to {} of {} are no whole leaves of {}", first,
                   first + in.shape.rows, all_rows, tree.leaf);
  in.rows = {first, all_rows};
  in.query_before = query_gradient.contiguous();
  return gradients_of(in);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> attention_over_backward(const Tensor& gradient, const Tensor& query,
                                                           const Tensor& key, const Tensor& value, const Tensor& output,
                                                           const Tensor& log_sum, const Tensor& query_gradient,
                                                           bool causal, double scale, int64_t first_row, int64_t first,
                                                           int64_t all_rows) {
  const auto given = shape_of(query, key, value, causal, scale, first_row);
  const auto& shape = given.sizes;
  return gradients_over_block({gradient, query, key, value, output, log_sum, shape, {}}, query_gradient, first,
                              all_rows);
}

std::tuple<Tensor, Tensor, Tensor> document_attention_over_backward(
    const Tensor& gradient, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& output,
    const Tensor& log_sum, const Tensor& query_gradient, const Tensor& places, const std::optional<Tensor>& draws,
    double dropout, double scale, int64_t first_row, int64_t first, int64_t all_rows) {
  const auto given =
      shape_of(query, key, value, /*causal=*/true, scale, first_row, {places, draws.value_or(Tensor()), dropout});
  const auto& shape = given.sizes;
  return gradients_over_block({gradient, query, key, value, output, log_sum, shape, {}}, query_gradient, first,
                              all_rows);
}

}  // namespace lockstep::kernels
