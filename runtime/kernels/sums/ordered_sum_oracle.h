#pragma once
#include <cmath>

#include "core/elementary/elementary.h"
#include "runtime/kernels/simd/lanes_oracle.h"
#include "runtime/kernels/sums/ordered_sum_loops.h"

/// What ordered_sum_loops.h computes, one number after the other. Slow; for tests and the self-test at start.
namespace lockstep::kernels {

/// A node by recursion: leaf(first element, end) is what a leaf gives.
template <class Leaf>
auto node_oracle(const SumTree& tree, SumNode node, const Leaf& leaf) -> decltype(leaf(int64_t{0}, int64_t{0})) {
  if (node.height == 0) return leaf(elements_of(tree, node).start, elements_of(tree, node).end);
  const SumNode left{node.height - 1, 2 * node.index}, right{node.height - 1, 2 * node.index + 1};
  const auto sum = node_oracle(tree, left, leaf);
  return elements_of(tree, right).start < tree.size ? sum + node_oracle(tree, right, leaf) : sum;
}

/// A leaf of a gradient: the chain of add(sum, element) from +0, and +0.
template <class T, class Add>
T chain_oracle(int64_t start, int64_t end, const Add& add) {
  T sum = 0;
  for (int64_t i = start; i < end; ++i) sum = add(sum, i);
  return sum + T(0);
}

enum class SumLeaf { kChain, kLanes };

/// Every node of every outer row and column: add(sum, outer row * count + element, place in x, outer row) continues a
/// chain or a lane.
template <SumLeaf kLeaf = SumLeaf::kLanes, class T, class Add>
void columns_oracle(const loops::OrderedSum& sum, T* out, const Add& add) {
  for (const auto& node : cover(sum.tree, sum.first, sum.count))
    for (int64_t o = 0; o < sum.outer; ++o)
      for (int64_t c = 0; c < sum.inner; ++c)
        *out++ = node_oracle(sum.tree, node, [&](int64_t start, int64_t end) {
          const auto add_here = [&](T so_far, int64_t i) {
            return add(so_far, o * sum.count + i, (o * sum.count + i) * sum.inner + c, o);
          };
          if constexpr (kLeaf == SumLeaf::kChain)
            return chain_oracle<T>(start - sum.first, end - sum.first, add_here);
          else
            return lanes_oracle<T>(start - sum.first, end - sum.first, add_here);
        });
}

template <class T>
void ordered_sum_oracle(const loops::OrderedSum& sum, const T* x, T* out) {
  columns_oracle(sum, out, [&](T so_far, int64_t, int64_t i, int64_t) { return so_far + x[i]; });
}

template <class T>
void exponential_sum_oracle(const loops::OrderedSum& sum, const T* x, const T* shift, T* out) {
  columns_oracle(sum, out, [&](T so_far, int64_t, int64_t i, int64_t outer) {
    return so_far + elementary::normal_exp(x[i] - shift[outer]);
  });
}

template <class T>
void norm_gradient_oracle(const loops::OrderedSum& sum, const T* g, const T* x, const T* r, T* out) {
  columns_oracle<SumLeaf::kChain>(sum, out, [&](T so_far, int64_t row, int64_t i, int64_t) {
    const T scaled = x[i] * r[row];
    return std::fma(g[i], scaled, so_far);
  });
}

/// With +0 where a position is another row's.
template <class T>
void table_gradient_oracle(const loops::TableGradient& shape, const int64_t* tokens, const T* gradient, T* out) {
  const auto places = SumTree::over_elements(shape.length);
  for (const auto& node : cover(shape.samples, shape.first_sample, shape.sample_count))
    for (int64_t row = shape.first_row; row < shape.first_row + shape.rows; ++row)
      for (int64_t column = 0; column < shape.width; ++column) {
        const auto at = [&](int64_t position) {
          const bool here = position < shape.count && tokens[position] == row;
          return here ? gradient[position * shape.width + column] : T(0);
        };
        const auto sample = [&](int64_t first, int64_t) {
          return node_oracle(places, {places.height, 0}, [&](int64_t start, int64_t end) {
            const int64_t offset = (first - shape.first_sample) * shape.length;
            return chain_oracle<T>(start + offset, end + offset, [&](T sum, int64_t i) { return sum + at(i); });
          });
        };
        *out++ = node_oracle(shape.samples, node, sample);
      }
}

}  // namespace lockstep::kernels
