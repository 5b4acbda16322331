// The gradient of an embedding table along the tree: positions that are not there are skipped, which changes no bit.
#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/kernels/simd/best_instruction_set.h"
#include "runtime/kernels/sums/ordered_sum_loops.h"

namespace lockstep::kernels::loops {
namespace {

template <class T>
struct FirstRow {
  LOCKSTEP_PORTABLE static void run(int64_t width, const T* row, T* __restrict out) {
    for (int64_t i = 0; i < width; ++i) out[i] = row[i] + T(0);
  }
};
template <class T>
struct AddRow {
  LOCKSTEP_PORTABLE static void run(int64_t width, const T* row, T* __restrict out) {
    for (int64_t i = 0; i < width; ++i) out[i] += row[i];
  }
};

/// Sums the gradients at sorted positions (sample * length + place) of one table row.
template <class T>
class RowSum {
 public:
  RowSum(const TableGradient& shape, const T* gradient, InstructionSet set)
      : shape_(shape), places_(SumTree::over_elements(shape.length)), gradient_(gradient), set_(set) {}

  /// False, and nothing written, if there are no positions.
  bool over_samples(SumNode node, std::span<const int64_t> positions, T* out, size_t depth) {
    if (positions.empty()) return false;
    if (node.height == 0) return over_places({places_.height, 0}, positions, out, depth);
    const SumNode right{node.height - 1, node.index * 2 + 1};
    const int64_t middle = ((right.index << right.height) - shape_.first_sample) * shape_.length;
    return both(positions, middle, depth, out, [&](bool is_right, auto part, T* to, size_t below) {
      return over_samples({node.height - 1, node.index * 2 + is_right}, part, to, below);
    });
  }

 private:
  bool over_places(SumNode node, std::span<const int64_t> positions, T* out, size_t depth) {
    if (positions.empty()) return false;
    if (node.height == 0) return chain(positions, out);
    const SumNode right{node.height - 1, node.index * 2 + 1};
    const int64_t sample = positions.front() / shape_.length * shape_.length;
    const int64_t middle = sample + elements_of(places_, right).start;
    return both(positions, middle, depth, out, [&](bool is_right, auto part, T* to, size_t below) {
      return over_places({node.height - 1, node.index * 2 + is_right}, part, to, below);
    });
  }

  template <class Half>
  bool both(std::span<const int64_t> positions, int64_t middle, size_t depth, T* out, const Half& half) {
    const auto cut =
        static_cast<size_t>(std::lower_bound(positions.begin(), positions.end(), middle) - positions.begin());
    const auto left = positions.first(cut), right = positions.subspan(cut);
    if (left.empty() || right.empty()) return half(left.empty(), left.empty() ? right : left, out, depth);
    half(false, left, out, depth);
    T* other = buffer(depth);
    half(true, right, other, depth + 1);
    on_instruction_set<AddRow<T>>(set_, shape_.width, static_cast<const T*>(other), out);
    return true;
  }

  bool chain(std::span<const int64_t> positions, T* out) const {
    const auto row = [&](int64_t position) { return gradient_ + position * shape_.width; };
    on_instruction_set<FirstRow<T>>(set_, shape_.width, row(positions.front()), out);
    for (const int64_t position : positions.subspan(1))
      on_instruction_set<AddRow<T>>(set_, shape_.width, row(position), out);
    return true;
  }

  T* buffer(size_t depth) {
    while (buffers_.size() <= depth) buffers_.emplace_back(static_cast<size_t>(shape_.width));
    return buffers_[depth].data();
  }

  const TableGradient& shape_;
  SumTree places_;
  const T* gradient_;
  InstructionSet set_;
  std::vector<std::vector<T>> buffers_;
};

/// The positions of every table row, one row after the other, each ascending; starts[row] is where a row's begin.
struct PositionsByRow {
  std::vector<int64_t> starts, positions;
};

PositionsByRow sort_by_row(const TableGradient& shape, const int64_t* tokens) {
  const auto row_of = [&](int64_t position) {
    const int64_t row = tokens[position] - shape.first_row;
    return row >= 0 && row < shape.rows ? row : -1;
  };
  PositionsByRow sorted{std::vector<int64_t>(static_cast<size_t>(shape.rows) + 1, 0), {}};
  for (int64_t p = 0; p < shape.count; ++p)
    if (row_of(p) >= 0) ++sorted.starts[static_cast<size_t>(row_of(p)) + 1];
  std::partial_sum(sorted.starts.begin(), sorted.starts.end(), sorted.starts.begin());
  sorted.positions.resize(static_cast<size_t>(sorted.starts.back()));
  auto next = sorted.starts;
  for (int64_t p = 0; p < shape.count; ++p)
    if (row_of(p) >= 0) sorted.positions[static_cast<size_t>(next[static_cast<size_t>(row_of(p))]++)] = p;
  return sorted;
}

}  // namespace

template <class T>
void table_gradient(const TableGradient& shape, const int64_t* tokens, const T* gradient, T* out, InstructionSet set) {
  const auto sorted = sort_by_row(shape, tokens);
  const auto nodes = cover(shape.samples, shape.first_sample, shape.sample_count);
  RowSum<T> sum(shape, gradient, set);
  for (int64_t row = 0; row < shape.rows; ++row) {
    const auto begin = static_cast<size_t>(sorted.starts[static_cast<size_t>(row)]);
    const auto end = static_cast<size_t>(sorted.starts[static_cast<size_t>(row) + 1]);
    const std::span<const int64_t> all(sorted.positions.data() + begin, end - begin);
    for (size_t n = 0; n < nodes.size(); ++n) {
      const auto range = elements_of(shape.samples, nodes[n]);
      const auto low = std::lower_bound(all.begin(), all.end(), (range.start - shape.first_sample) * shape.length);
      const auto high = std::lower_bound(low, all.end(), (range.end - shape.first_sample) * shape.length);
      T* to = out + (static_cast<int64_t>(n) * shape.rows + row) * shape.width;
      if (!sum.over_samples(nodes[n], {low, high}, to, 0)) std::fill_n(to, shape.width, T(0));
    }
  }
}

template void table_gradient(const TableGradient&, const int64_t*, const float*, float*, InstructionSet);
template void table_gradient(const TableGradient&, const int64_t*, const double*, double*, InstructionSet);

}  // namespace lockstep::kernels::loops
