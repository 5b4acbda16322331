#include "runtime/kernels/attention/attention_oracle.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "rng/philox.h"
#include "runtime/kernels/attention/attention_numbers.h"
#include "runtime/kernels/simd/lanes.h"

namespace lockstep::kernels {
namespace {

float widen(float value) { return value; }
double widen(double value) { return value; }
float widen(Bfloat16 value) { return portable::bits<float>(static_cast<uint32_t>(value.bits) << 16); }

/// Element (row, element) of one head.
template <class T>
auto& element(const HeadTensor<T>& head, int64_t row, int64_t column) {
  return head.data[row * head.row_stride + column * head.element_stride];
}

template <class T, class A, class B>
T dot(const HeadTensor<A>& a, int64_t row_a, const HeadTensor<B>& b, int64_t row_b, int64_t size) {
  T sum = 0;
  for (int64_t i = 0; i < size; ++i) sum = std::fma(widen(element(a, row_a, i)), widen(element(b, row_b, i)), sum);
  return sum;
}

template <class T>
T base_two_scale(const AttentionShape& shape) {
  return static_cast<T>(shape.scale * kLog2E);
}

/// Of a query row and a key.
template <class T>
T dropout_factor(const AttentionShape& shape, int64_t batch, int64_t head, int64_t row, int64_t key) {
  if (!(shape.dropout.share > 0)) return 1;
  const auto rows = shape.dropout.draws.at(batch, head);
  const int64_t* draws = rows.data + row * rows.row_stride;
  const auto element = static_cast<uint64_t>(draws[2] + key - (shape.first_row + row));
  const auto words = rng::words({static_cast<uint64_t>(draws[0])}, {element / 4, static_cast<uint64_t>(draws[1])});
  const double kept = 1 - shape.dropout.share;
  return words.word[element % 4] < std::nearbyint(std::ldexp(kept, 32)) ? static_cast<T>(1 / kept) : T(0);
}

/// One query row of one head.
template <class Input, class T>
void forward_row(const AttentionForward<Input, T>& work, int64_t batch, int64_t head, int64_t row) {
  const AttentionShape& shape = work.shape;
  const auto query = work.query.at(batch, head);
  const auto key = work.key.at(batch, head / shape.group), value = work.value.at(batch, head / shape.group);
  const T infinity = std::numeric_limits<T>::infinity();
  const int64_t seen = shape.keys_of(row), first = shape.first_key_of(batch, row);
  std::vector<T> sums(static_cast<std::size_t>(shape.width), T(0));
  T lanes[kSumLanes] = {}, highest = -infinity;
  for (int64_t block = 0; block < seen; block += kKeyBlock) {
    const int64_t end = std::min(block + kKeyBlock, seen);
    std::vector<T> y;
    T raised = highest;
    const int64_t begin = std::max(block, first);
    for (int64_t j = begin; j < end; ++j) {
      y.push_back(dot<T>(query, row, key, j, shape.depth) * base_two_scale<T>(shape));
      if (std::rint(y.back()) > raised) raised = std::rint(y.back());
    }
    const T factor = raised > highest ? rescaling(highest - raised) : T(1);
    for (T& sum : sums) sum *= factor;
    for (T& lane : lanes) lane *= factor;
    highest = raised;
    for (int64_t j = begin; j < end; ++j) {
      const T p = weight(y[static_cast<std::size_t>(j - begin)], highest);
      const T kept = p * dropout_factor<T>(shape, batch, head, row, j);
      lanes[j % kSumLanes] += p;
      for (int64_t i = 0; i < shape.width; ++i) {
        T& sum = sums[static_cast<std::size_t>(i)];
        sum = std::fma(kept, widen(element(value, j, i)), sum);
      }
    }
  }
  const T denominator = sum_of_lanes<T>(lanes);
  for (int64_t i = 0; i < shape.width; ++i)
    element(work.output.at(batch, head), row, i) =
        seen > first ? sums[static_cast<std::size_t>(i)] / denominator : T(0);
  element(work.log_sum.at(batch, head), row, 0) = seen > first ? log_sum_of(denominator, highest) : -infinity;
}

/// Gradients of one batch and one key-value head.
template <class Input, class T>
class BackwardHead {
 public:
  BackwardHead(const AttentionBackward<Input, T>& work, int64_t batch, int64_t head)
      : work_(work),
        shape_(work.shape),
        batch_(batch),
        head_(head),
        key_(work.key.at(batch, head)),
        value_(work.value.at(batch, head)) {}

  void run() {
    find_weights();
    for (int64_t row = 0; row < shape_.rows; ++row)
      for (int64_t g = 0; g < shape_.group; ++g)
        for (int64_t i = 0; i < shape_.depth; ++i) {
          T sum = 0;
          for (int64_t j = shape_.first_key_of(batch_, row); j < shape_.keys_of(row); ++j)
            sum = std::fma(slope(row, g, j), widen(element(key_, j, i)), sum);
          element(work_.query_gradient.at(batch_, query_head(g)), row, i) = sum;
        }
    const SumTree tree = SumTree::over_elements(work_.all_rows);
    auto nodes = cover(tree, work_.first, shape_.rows);
    if (work_.all_rows == 0) nodes.push_back({tree.height, 0});
    for (std::size_t p = 0; p < nodes.size(); ++p) write_node(tree, nodes[p], static_cast<int64_t>(p));
  }

 private:
  int64_t query_head(int64_t g) const { return head_ * shape_.group + g; }
  std::size_t index(int64_t row, int64_t g, int64_t key) const {
    return static_cast<std::size_t>((row * shape_.group + g) * shape_.keys + key);
  }
  T slope(int64_t row, int64_t g, int64_t key) const { return slopes_[index(row, g, key)]; }
  T weight_of(int64_t row, int64_t g, int64_t key) const { return weights_[index(row, g, key)]; }

  void find_weights() {
    weights_.resize(static_cast<std::size_t>(shape_.rows * shape_.group * shape_.keys));
    slopes_.resize(weights_.size());
    for (int64_t row = 0; row < shape_.rows; ++row)
      for (int64_t g = 0; g < shape_.group; ++g) {
        const auto query = work_.query.at(batch_, query_head(g)), gradient = work_.gradient.at(batch_, query_head(g)),
                   output = work_.output.at(batch_, query_head(g));
        T lanes[kSumLanes] = {};
        for (int64_t i = 0; i < shape_.width; ++i)
          lanes[i % kSumLanes] =
              std::fma(widen(element(gradient, row, i)), widen(element(output, row, i)), lanes[i % kSumLanes]);
        const T d = sum_of_lanes<T>(lanes), log_sum = element(work_.log_sum.at(batch_, query_head(g)), row, 0);
        for (int64_t j = shape_.first_key_of(batch_, row); j < shape_.keys_of(row); ++j) {
          const T y = dot<T>(query, row, key_, j, shape_.depth) * base_two_scale<T>(shape_);
          const T p = probability(y - log_sum), factor = dropout_factor<T>(shape_, batch_, query_head(g), row, j);
          const T t = dot<T>(gradient, row, value_, j, shape_.width) * factor;
          weights_[index(row, g, j)] = p * factor;
          slopes_[index(row, g, j)] = (p * (t - d)) * static_cast<T>(shape_.scale);
        }
      }
  }

  /// The sum below a node of factor(row, g) * element i of the row of `tensor`, over rows that attend the key.
  template <class Factor>
  T sum(const SumTree& tree, const SumNode& node, const Factor& factor, const HeadTensor<const Input>& tensor,
        int64_t key, int64_t i) const {
    const auto [start, end] = elements_of(tree, node);
    if (node.height > 0) {
      const SumNode left{node.height - 1, node.index * 2}, right{node.height - 1, node.index * 2 + 1};
      const T first = sum(tree, left, factor, tensor, key, i);
      return elements_of(tree, right).start < tree.size ? first + sum(tree, right, factor, tensor, key, i) : first;
    }
    T chain = 0;
    for (int64_t row = start - work_.first; row < end - work_.first; ++row)
      for (int64_t g = 0; g < shape_.group && key >= shape_.first_key_of(batch_, row) && key < shape_.keys_of(row); ++g)
        chain = std::fma(factor(row, g), widen(element(tensor.at(batch_, query_head(g)), row, i)), chain);
    return chain + T(0);
  }

  void write_node(const SumTree& tree, const SumNode& node, int64_t p) {
    auto key_gradient = work_.key_gradient.at(batch_, head_), value_gradient = work_.value_gradient.at(batch_, head_);
    key_gradient.data += p * work_.key_node_stride;
    value_gradient.data += p * work_.value_node_stride;
    for (int64_t j = 0; j < shape_.keys; ++j) {
      const auto slope_here = [&](int64_t row, int64_t g) { return slope(row, g, j); };
      const auto weight_here = [&](int64_t row, int64_t g) { return weight_of(row, g, j); };
      for (int64_t i = 0; i < shape_.depth; ++i)
        element(key_gradient, j, i) = sum(tree, node, slope_here, work_.query, j, i);
      for (int64_t i = 0; i < shape_.width; ++i)
        element(value_gradient, j, i) = sum(tree, node, weight_here, work_.gradient, j, i);
    }
  }

  const AttentionBackward<Input, T>& work_;
  const AttentionShape& shape_;
  int64_t batch_, head_;
  HeadTensor<const Input> key_, value_;
  std::vector<T> weights_, slopes_;
};

}  // namespace

template <class Input, class T>
void attention_forward_oracle(const AttentionForward<Input, T>& work) {
  for (int64_t batch = 0; batch < work.shape.batch; ++batch)
    for (int64_t head = 0; head < work.shape.heads * work.shape.group; ++head)
      for (int64_t row = 0; row < work.shape.rows; ++row) forward_row(work, batch, head, row);
}

template <class Input, class T>
void attention_backward_oracle(const AttentionBackward<Input, T>& work) {
  for (int64_t batch = 0; batch < work.shape.batch; ++batch)
    for (int64_t head = 0; head < work.shape.heads; ++head) BackwardHead<Input, T>(work, batch, head).run();
}

#define LOCKSTEP_INSTANTIATE(Input, T)                                            \
  template void attention_forward_oracle(const AttentionForward<Input, T>& work); \
  template void attention_backward_oracle(const AttentionBackward<Input, T>& work)
LOCKSTEP_INSTANTIATE(float, float);
LOCKSTEP_INSTANTIATE(Bfloat16, float);
LOCKSTEP_INSTANTIATE(double, double);
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels
