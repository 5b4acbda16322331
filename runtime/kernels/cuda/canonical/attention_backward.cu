#include "runtime/kernels/cuda/canonical/attention_rows.h"

namespace lockstep::cuda::canonical {
namespace {

constexpr int kWarps = static_cast<int>(kThreads / kWarp);

template <class Input>
struct Backward {
  kernels::AttentionBackward<Input, float> work;
  Scales scales;
  float* shared;  ///< [batch, query heads, rows]: what the weights' gradients of a row have in common

  std::array<const void*, 13> memory() const {
    return {work.gradient.data,
            work.query.data,
            work.key.data,
            work.value.data,
            work.output.data,
            work.log_sum.data,
            work.query_gradient.data,
            work.key_gradient.data,
            work.value_gradient.data,
            work.query_before.data,
            work.shape.places,
            work.shape.dropout.draws.data,
            shared};
  }

  __device__ float& shared_of(int64_t batch, int64_t head, int64_t row) const {
    return shared[(batch * work.shape.heads * work.shape.group + head) * work.shape.rows + row];
  }
};

/// A query row's weight on a key, as far as it is not dropped, and the gradient of its score.
struct Slope {
  float weight, slope;
};

template <class Input>
__device__ Slope slope_of(const Backward<Input>& call, int64_t batch, int64_t head, int64_t row, int64_t key,
                          float shared) {
  const auto& work = call.work;
  const auto& scales = call.scales;
  const int64_t of_keys = head / work.shape.group;
  const HeadRow query(work.query, batch, head, row), gradient(work.gradient, batch, head, row);
  const HeadRow keys(work.key, batch, of_keys, key), value(work.value, batch, of_keys, key);
  const HeadRow log_sum(work.log_sum, batch, head, row);
  const float y = dot(query, keys, work.shape.depth) * scales.base_two;
  const float p = kernels::probability(y - log_sum[0]);
  const float factor = scales.dropout_factor(work.shape, batch, head, row, key);
  const float t = dot(gradient, value, work.shape.width) * factor;
  return {p * factor, p * (t - shared) * scales.plain};
}

/// A warp has a query row: its threads a key each, then elements.
template <class Input>
__device__ void query_row(const Backward<Input>& call, int64_t batch, int64_t head, int64_t row,
                          float (&slopes)[kWarp]) {
  const auto& work = call.work;
  const AttentionShape& shape = work.shape;
  const HeadRow gradient(work.gradient, batch, head, row), output(work.output, batch, head, row);
  float lane = 0;
  for (int64_t i = lane_of_row(); i < shape.width; i += kLanes)
    lane = portable::fma(widened(gradient[i]), widened(output[i]), lane);
  const float shared = sum_of_lanes(lane);
  if (own_lane() == 0) call.shared_of(batch, head, row) = shared;

  float sums[kColumns] = {};
  if (work.query_before.data != nullptr) {
    const HeadRow before(work.query_before, batch, head, row);
    for_own_columns(shape.depth, [&](int c, int64_t i) { sums[c] = before[i]; });
  }
  const int64_t end = shape.keys_of(row);
  for (int64_t key = shape.first_key_of(batch, row); key < end; key += kWarp) {
    if (key + own_lane() < end) slopes[own_lane()] = slope_of(call, batch, head, row, key + own_lane(), shared).slope;
    __syncwarp(kWholeWarp);
    for (int j = 0; j < kWarp && key + j < end; ++j) {
      const HeadRow of_key(work.key, batch, head / shape.group, key + j);
      for_own_columns(shape.depth,
                      [&](int c, int64_t i) { sums[c] = portable::fma(slopes[j], widened(of_key[i]), sums[c]); });
    }
    __syncwarp(kWholeWarp);
  }
  const HeadRow to(work.query_gradient, batch, head, row);
  for_own_columns(shape.depth, [&](int c, int64_t i) { to[i] = sums[c]; });
}

template <class Input>
__global__ void query_gradients(Backward<Input> call) {
  __shared__ float slopes[kWarps][kWarp];
  const AttentionShape& shape = call.work.shape;
  const int64_t heads = shape.heads * shape.group;
  for (int64_t i = own_warp(); i < shape.batch * heads * shape.rows; i += all_warps())
    query_row(call, i / shape.rows / heads, i / shape.rows % heads, i % shape.rows, slopes[threadIdx.x / kWarp]);
}

/// Query rows of a node, counted as all ranks do.
struct QueryNode {
  int64_t start, end, leaf;
};

/// What rows of queries give a key, a thread each; rows that do not attend it give nothing.
struct GivenSlopes {
  Slope of[kWarp];
  bool attends[kWarp];
};

/// A warp has a key: its threads a row of queries each, then elements: of the key's gradient, and of the value's behind
/// them.
template <class Input>
class KeyRow {
 public:
  __device__ KeyRow(const Backward<Input>& call, int64_t batch, int64_t head, int64_t key, GivenSlopes& given)
      : call_(call), shape_(call.work.shape), batch_(batch), head_(head), key_(key), given_(given) {}

  __device__ void run(const QueryNode& node, int64_t place) {
    TreeSums<2 * kColumns, kDeepestOfElements> sums;
    for (int64_t start = node.start; start < node.end; start += node.leaf) {
      const int64_t end = start + node.leaf < node.end ? start + node.leaf : node.end;
      if (key_ >= shape_.keys_of(end - 1 - call_.work.first)) continue;  // no row of it attends
      for (float& element : chain_) element = 0;
      const int64_t rows = (end - start) * shape_.group;
      for (int64_t row = 0; row < rows; row += kWarp)
        add_rows((start - call_.work.first) * shape_.group + row, rows - row);
      for (float& element : chain_) element = element + 0.0f;
      sums.add(start / node.leaf, chain_);
    }
    const auto& total = sums.total();
    auto keys = call_.work.key_gradient, values = call_.work.value_gradient;
    keys.data += place * call_.work.key_node_stride, values.data += place * call_.work.value_node_stride;
    const HeadRow key(keys, batch_, head_, key_), value(values, batch_, head_, key_);
    for_own_columns(shape_.depth, [&](int c, int64_t i) { key[i] = total[c]; });
    for_own_columns(shape_.width, [&](int c, int64_t i) { value[i] = total[kColumns + c]; });
  }

 private:
  __device__ int64_t head_of(int64_t index) const { return head_ * shape_.group + index % shape_.group; }

  /// Rows of queries in their order, within a row the heads of the group: `count` of them, 32 at most.
  __device__ void add_rows(int64_t first, int64_t count) {
    if (own_lane() < count) {
      const int64_t index = first + own_lane(), row = index / shape_.group;
      const bool attends = key_ >= shape_.first_key_of(batch_, row) && key_ < shape_.keys_of(row);
      given_.attends[own_lane()] = attends;
      if (attends)
        given_.of[own_lane()] =
            slope_of(call_, batch_, head_of(index), row, key_, call_.shared_of(batch_, head_of(index), row));
    }
    __syncwarp(kWholeWarp);
    for (int i = 0; i < kWarp && i < count; ++i)
      if (given_.attends[i]) add_row(given_.of[i], head_of(first + i), (first + i) / shape_.group);
    __syncwarp(kWholeWarp);
  }

  __device__ void add_row(const Slope& given, int64_t head, int64_t row) {
    const HeadRow query(call_.work.query, batch_, head, row), gradient(call_.work.gradient, batch_, head, row);
    for_own_columns(shape_.depth,
                    [&](int c, int64_t i) { chain_[c] = portable::fma(given.slope, widened(query[i]), chain_[c]); });
    for_own_columns(shape_.width, [&](int c, int64_t i) {
      chain_[kColumns + c] = portable::fma(given.weight, widened(gradient[i]), chain_[kColumns + c]);
    });
  }

  const Backward<Input>& call_;
  const AttentionShape& shape_;
  int64_t batch_, head_, key_;
  GivenSlopes& given_;
  float chain_[2 * kColumns];
};

template <class Input>
__global__ void key_gradients(Backward<Input> call, QueryNode node, int64_t place) {
  __shared__ GivenSlopes given[kWarps];
  const AttentionShape& shape = call.work.shape;
  for (int64_t i = own_warp(); i < shape.batch * shape.heads * shape.keys; i += all_warps())
    KeyRow<Input>(call, i / shape.keys / shape.heads, i / shape.keys % shape.heads, i % shape.keys,
                  given[threadIdx.x / kWarp])
        .run(node, place);
}

}  // namespace

template <class Input>
void attention_backward(const kernels::AttentionBackward<Input, float>& work, float* shared) {
  const AttentionShape& shape = work.shape;
  const Backward<Input> call{work, Scales(shape), shared};
  const int64_t queries = shape.batch * shape.heads * shape.group * shape.rows;
  launch("attention_backward", query_gradients<Input>, queries * kWarp, call);
  const auto tree = SumTree::over_elements(work.all_rows);
  auto nodes = cover(tree, work.first, shape.rows);
  if (work.all_rows == 0) nodes.push_back({tree.height, 0});
  for (std::size_t p = 0; p < nodes.size(); ++p) {
    const auto [start, end] = elements_of(tree, nodes[p]);
    launch("attention_backward", key_gradients<Input>, shape.batch * shape.heads * shape.keys * kWarp, call,
           QueryNode{start, end, tree.leaf}, static_cast<int64_t>(p));
  }
}

template void attention_backward(const kernels::AttentionBackward<float, float>&, float*);
template void attention_backward(const kernels::AttentionBackward<Bfloat16, float>&, float*);

}  // namespace lockstep::cuda::canonical
