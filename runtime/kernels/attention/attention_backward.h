#pragma once
// Attention backward for one instruction set; see tile.h for how it is included.
#include <vector>

#include "runtime/kernels/attention/attention_dropout.h"
#include "runtime/kernels/attention/attention_tile.h"

namespace lockstep::kernels {
namespace {

/// Query rows are counted with the heads of the group inside: row * group + head. Outside go blocks of keys, so that
/// the nodes that wait for their right siblings stay in the cache; inside blocks of rows, whole leaves each.
template <class Tiling, class Input>
class BackwardKernel {
  using Set = typename Tiling::Set;
  using T = typename Set::Element;
  static constexpr int kRows = Tiling::kRows, kColumns = Tiling::kColumns, kVectors = kSumLanes / Set::kLanes;
  static constexpr int64_t kKeys = kKeyBlock / (kRows * kColumns / 2) * (kRows * kColumns / 2);  ///< whole tiles
  static_assert(kKeys > 0 && kKeys % kRows == 0 && kKeys % kColumns == 0);
  static constexpr int64_t kRowLimit = 8 * kRows;

 public:
  LOCKSTEP_TILE_TARGET static void run(const BackwardPiece<Input, T>& piece) { BackwardKernel(piece).run(); }

 private:
  /// Rows of one factor: as left factor of dots, as right factor of sums over rows.
  struct Rows {
    T *left, *right;
    int64_t size, padded;
  };

  LOCKSTEP_TILE_TARGET explicit BackwardKernel(const BackwardPiece<Input, T>& piece)
      : piece_(piece),
        work_(*piece.work),
        shape_(work_.shape),
        rows_(shape_.rows * shape_.group),
        scale_(static_cast<T>(shape_.scale)),
        base_two_scale_(static_cast<T>(shape_.scale * kLog2E)),
        blocks_(row_blocks(*piece.plan, shape_.group, kRowLimit, kRows)) {
    for (int64_t row = 0; row < rows_; ++row) {
      keys_of_rows_.push_back(shape_.keys_of(row / shape_.group));
      first_keys_of_rows_.push_back(shape_.first_key_of(piece.batch, row / shape_.group));
    }
    for (int64_t key = 0, end = 0; key < shape_.keys; ++key) {
      while (end < rows_ && first_keys_of_rows_[static_cast<std::size_t>(end)] <= key) ++end;
      ends_of_keys_.push_back(end);
    }
    queries_.size = shape_.depth, queries_.padded = round_up(shape_.depth, kColumns);
    gradients_.size = shape_.width, gradients_.padded = round_up(shape_.width, kColumns);
    const int64_t panel_keys = round_up(shape_.keys, kColumns), packed = blocks_.packed_rows / kRows * Tiling::kPacked;
    const int64_t both = shape_.depth + shape_.width, padded = queries_.padded + gradients_.padded;
    const int64_t tile = kRows * kColumns, level = kKeys / kRows * (padded / kColumns) * tile;
    const int64_t wide = std::max(shape_.depth, shape_.width);
    T* memory = scratch<T, Purpose::kAttention>().reserve(
        panel_keys * both + shape_.keys * queries_.padded + packed * both + rows_ * padded + rows_ * wide + 2 * rows_ +
        blocks_.packed_rows * queries_.padded + 2 * blocks_.most_rows * kWeightStride +
        level * (piece.plan->deepest + 1));
    const auto take = [&memory](int64_t size) { return memory += size, memory - size; };
    key_dots_ = take(panel_keys * shape_.depth);
    value_dots_ = take(panel_keys * shape_.width);
    key_sums_ = take(shape_.keys * queries_.padded);
    queries_.left = take(packed * shape_.depth);
    gradients_.left = take(packed * shape_.width);
    queries_.right = take(rows_ * queries_.padded);
    gradients_.right = take(rows_ * gradients_.padded);
    dense_ = take(rows_ * wide);
    log_sums_ = take(rows_);
    products_ = take(rows_);
    sums_ = take(blocks_.packed_rows * queries_.padded);
    weights_ = take(blocks_.most_rows * kWeightStride);
    slopes_ = take(blocks_.most_rows * kWeightStride);
    waiting_ = take(level * (piece.plan->deepest + 1));
    level_ = level;
  }

  LOCKSTEP_TILE_TARGET void run() {
    const auto key = work_.key.at(piece_.batch, piece_.head), value = work_.value.at(piece_.batch, piece_.head);
    pack_for_dots<Tiling>(key, shape_.keys, shape_.depth, key_dots_);
    pack_for_dots<Tiling>(value, shape_.keys, shape_.width, value_dots_);
    pack_for_sums<Tiling>(key, shape_.keys, shape_.depth, key_sums_);
    pack_rows_of(work_.query, queries_);
    pack_rows_of(work_.gradient, gradients_);  // last: find_products reads what it leaves in dense_
    find_products();
    std::fill(sums_, sums_ + blocks_.packed_rows * queries_.padded, T(0));
    if (work_.query_before.data != nullptr)
      for (const RowBlock& block : blocks_.all) go_on(block);
    filled_.resize(static_cast<std::size_t>(piece_.plan->deepest) + 1);
    for (first_key_ = 0; first_key_ < shape_.keys; first_key_ += kKeys) {
      keys_ = std::min(kKeys, shape_.keys - first_key_);
      for (const RowBlock& block : blocks_.all) add_block(block);
    }
    for (const RowBlock& block : blocks_.all) write_queries(block);
  }

  LOCKSTEP_TILE_TARGET void go_on(const RowBlock& block) {
    for (int64_t row = 0; row < block.rows; ++row) {
      const auto from = work_.query_before.at(piece_.batch, head_of(block.first + row));
      std::copy_n(from.data + (block.first + row) / shape_.group * from.row_stride, shape_.depth,
                  sums_ + (block.packed + row) * queries_.padded);
    }
  }

  LOCKSTEP_TILE_TARGET void write_queries(const RowBlock& block) const {
    for (int64_t row = 0; row < block.rows; ++row) {
      const auto to = work_.query_gradient.at(piece_.batch, head_of(block.first + row));
      const T* from = sums_ + (block.packed + row) * queries_.padded;
      std::copy(from, from + shape_.depth, to.data + (block.first + row) / shape_.group * to.row_stride);
    }
  }

  LOCKSTEP_TILE_INLINE int64_t head_of(int64_t row) const { return piece_.head * shape_.group + row % shape_.group; }
  /// A row attends keys begin_of() .. count_of() - 1 of this block.
  LOCKSTEP_TILE_INLINE int64_t count_of(int64_t row) const { return in_block(keys_of_rows_, row); }
  LOCKSTEP_TILE_INLINE int64_t begin_of(int64_t row) const { return in_block(first_keys_of_rows_, row); }
  LOCKSTEP_TILE_INLINE int64_t in_block(const std::vector<int64_t>& keys, int64_t row) const {
    return std::clamp<int64_t>(keys[static_cast<std::size_t>(std::min(row, rows_ - 1))] - first_key_, 0, keys_);
  }
  /// The first of all rows that attends a key of this block.
  LOCKSTEP_TILE_INLINE int64_t start_of(int64_t key) const {
    const int64_t row = first_key_ + std::min(key, keys_ - 1) - shape_.first_row;
    return shape_.causal && row > 0 ? row * shape_.group : 0;
  }
  /// Behind the last of them.
  LOCKSTEP_TILE_INLINE int64_t end_of(int64_t key) const {
    return ends_of_keys_[static_cast<std::size_t>(first_key_ + std::min(key, keys_ - 1))];
  }

  LOCKSTEP_TILE_TARGET void pack_rows_of(const HeadTensor<const Input>& tensor, const Rows& to) {
    copy_rows(tensor, piece_.batch, piece_.head, shape_.group, /*first=*/0, rows_, to.size, dense_);
    for (const RowBlock& block : blocks_.all)
      pack<kRows>(PackWork<T, T>{dense_ + block.first * to.size, to.size, 1, block.rows, to.size,
                                 to.left + block.packed / kRows * Tiling::kPacked * to.size, Tiling::kPacked,
                                 Tiling::kPacked * to.size});
    pack<kColumns>(PackWork<T, T>{dense_, 1, to.size, to.size, rows_, to.right, kColumns, kColumns * rows_});
  }

  /// The sums of gradient times output, and log_sum where it is at hand.
  LOCKSTEP_TILE_TARGET void find_products() {
    for (int64_t row = 0; row < rows_; ++row) {
      const auto head = work_.output.at(piece_.batch, head_of(row));
      const Input* output = head.data + row / shape_.group * head.row_stride;
      const T* gradient = dense_ + row * shape_.width;
      T lanes[kSumLanes] = {};
      for (int64_t i = 0; i < shape_.width; ++i)
        lanes[i % kSumLanes] = portable::fma(gradient[i], widen(output[i * head.element_stride]), lanes[i % kSumLanes]);
      products_[row] = sum_of_lanes<T>(lanes);
      const auto log_sum = work_.log_sum.at(piece_.batch, head_of(row));
      log_sums_[row] = log_sum.data[row / shape_.group * log_sum.row_stride];
    }
  }

  LOCKSTEP_TILE_TARGET void add_block(const RowBlock& block) {
    const bool any = block.rows > 0 && count_of(block.first + block.rows - 1) > 0;
    if (any && begin_of(block.first) < keys_) {
      find_dots(block, queries_, key_dots_, weights_);
      find_dots(block, gradients_, value_dots_, slopes_);
      for (int64_t row = 0; row < block.rows; ++row) find_slopes(block, row);
      add_to_queries(block);
    }
    for (int64_t leaf = block.first_leaf; leaf < block.end_leaf; ++leaf)
      add_leaf(block, piece_.plan->groups[static_cast<std::size_t>(leaf)], any);
  }

  LOCKSTEP_TILE_TARGET void find_dots(const RowBlock& block, const Rows& rows, const T* keys, T* to) const {
    for (int64_t key = 0; key < keys_; key += kColumns)
      for (int64_t row = 0; row < block.rows; row += kRows) {
        if (count_of(block.first + std::min(row + kRows, block.rows) - 1) <= key ||
            begin_of(block.first + row) >= key + kColumns)
          continue;
        Tiling::template run<Dot>(block.rows - row, kColumns,
                                  DotWork<T>{rows.left + (block.packed + row) / kRows * Tiling::kPacked * rows.size,
                                             keys + (first_key_ + key) * rows.size, Tiling::kPacked, kColumns,
                                             rows.size, to + row * kWeightStride + key});
      }
  }

  LOCKSTEP_TILE_TARGET void find_slopes(const RowBlock& block, int64_t row) const {
    const int64_t begin = begin_of(block.first + row), end = count_of(block.first + row);
    const int64_t count = round_up(end, kSumLanes);
    const T log_sum = log_sums_[block.first + row], product = products_[block.first + row];
    T* __restrict weights = weights_ + row * kWeightStride;
    T* __restrict slopes = slopes_ + row * kWeightStride;
    T factors[kKeyBlock];
    const bool drops = shape_.dropout.share > 0 && end > begin;
    if (drops) find_factors(block.first + row, begin, end, factors);
    for (int64_t i = begin; drops && i < end; ++i) slopes[i] *= factors[i];
    for (int64_t i = begin / kSumLanes * kSumLanes; i < count; ++i) {
      const T p = probability(weights[i] * base_two_scale_ - log_sum);
      weights[i] = p;
      slopes[i] = (p * (slopes[i] - product)) * scale_;
    }
    for (int64_t i = begin; drops && i < end; ++i) weights[i] *= factors[i];
  }

  LOCKSTEP_TILE_INLINE void find_factors(int64_t row, int64_t begin, int64_t end, T* factors) const {
    dropout_factors(shape_, piece_.batch, head_of(row), row / shape_.group, first_key_ + begin, end - begin,
                    factors + begin);
  }

  LOCKSTEP_TILE_TARGET void add_to_queries(const RowBlock& block) {
    for (int64_t column = 0; column < shape_.depth; column += kColumns)
      for (int64_t row = 0; row < block.rows; row += kRows) {
        int64_t starts[kRows], counts[kRows];
        for (int i = 0; i < kRows; ++i) {
          const int64_t here = block.first + std::min(row + i, block.rows - 1);
          starts[i] = begin_of(here), counts[i] = count_of(here);
        }
        Tiling::template run<OverKeys>(
            block.rows - row, shape_.depth - column,
            OverKeysWork<T>{slopes_ + row * kWeightStride, key_sums_ + column * shape_.keys + first_key_ * kColumns,
                            kColumns, starts, counts, sums_ + (block.packed + row) * queries_.padded + column,
                            queries_.padded});
      }
  }

  /// Leaves that no row of attends a key here are +0: nothing is added for them.
  LOCKSTEP_TILE_TARGET void add_leaf(const RowBlock& block, const LeafGroup& leaf, bool any) {
    const int depth = leaf.depth - leaf.joins;
    int joins = 0;  // with what waits and is not nothing: nothing comes first, because later rows attend more keys
    while (joins < leaf.joins && filled_[static_cast<std::size_t>(leaf.depth - 1 - joins)]) ++joins;
    filled_[static_cast<std::size_t>(depth)] = any;
    if (!any && !leaf.ends_node) return;
    if (!any) return write_nothing(leaf.node);
    const T* weights = weights_ + (leaf.position * shape_.group - block.first) * kWeightStride;
    const T* slopes = slopes_ + (leaf.position * shape_.group - block.first) * kWeightStride;
    T* waiting = waiting_ + leaf.depth * level_;
    waiting = add_rows(leaf, weights, gradients_, waiting, joins,
                       output_of(work_.value_gradient, work_.value_node_stride, leaf));
    add_rows(leaf, slopes, queries_, waiting, joins, output_of(work_.key_gradient, work_.key_node_stride, leaf));
  }

  /// Where the first key of this block goes if a node ends.
  LOCKSTEP_TILE_INLINE HeadTensor<T> output_of(const HeadTensor<T>& gradient, int64_t node_stride,
                                               const LeafGroup& leaf) const {
    HeadTensor<T> head = gradient.at(piece_.batch, piece_.head);
    head.data += leaf.node * node_stride + first_key_ * head.row_stride;
    if (!leaf.ends_node) head.data = nullptr;
    return head;
  }

  /// All tiles of one leaf; returns where the tiles behind them wait.
  LOCKSTEP_TILE_TARGET T* add_rows(const LeafGroup& leaf, const T* weights, const Rows& rows, T* waiting, int joins,
                                   const HeadTensor<T>& out) const {
    const int64_t first = leaf.position * shape_.group, length = leaf.length * shape_.group;
    for (int64_t key = 0; key < keys_; key += kRows) {
      int64_t starts[kRows], ends[kRows];
      for (int i = 0; i < kRows; ++i) {
        starts[i] = std::clamp<int64_t>(start_of(key + i) - first, 0, length);
        ends[i] = std::clamp<int64_t>(end_of(key + i) - first, 0, length);
      }
      for (int64_t column = 0; column < rows.size; column += kColumns, waiting += kRows * kColumns) {
        T* to = out.data == nullptr ? nullptr : out.data + key * out.row_stride + column;
        Tiling::template run<OverRows>(
            keys_ - key, rows.size - column,
            OverRowsWork<T>{weights + key, rows.right + column * rows_ + first * kColumns, kColumns, starts, ends,
                            waiting, level_, joins, leaf.joins, to, out.row_stride,
                            std::min<int64_t>(kRows, keys_ - key), std::min<int64_t>(kColumns, rows.size - column)});
      }
    }
    return waiting;
  }

  LOCKSTEP_TILE_TARGET void write_nothing(int64_t node) const {
    const auto write = [&](HeadTensor<T> head, int64_t node_stride, int64_t size) {
      for (int64_t key = first_key_; key < first_key_ + keys_; ++key)
        std::fill_n(head.data + node * node_stride + key * head.row_stride, size, T(0));
    };
    write(work_.key_gradient.at(piece_.batch, piece_.head), work_.key_node_stride, shape_.depth);
    write(work_.value_gradient.at(piece_.batch, piece_.head), work_.value_node_stride, shape_.width);
  }

  const BackwardPiece<Input, T>& piece_;
  const AttentionBackward<Input, T>& work_;
  const AttentionShape& shape_;
  const int64_t rows_;
  const T scale_, base_two_scale_;
  std::vector<int64_t> keys_of_rows_, first_keys_of_rows_;  ///< a division for each row, not for each tile
  std::vector<int64_t> ends_of_keys_;                       ///< behind the last row that attends a key
  const RowBlocks blocks_;
  Rows queries_{}, gradients_{};
  T *key_dots_, *value_dots_, *key_sums_;  ///< packed keys and values
  T *dense_, *log_sums_, *products_, *sums_, *weights_, *slopes_, *waiting_;
  int64_t level_;             ///< elements that wait per depth
  std::vector<char> filled_;  ///< per depth: does something wait there
  int64_t first_key_ = 0, keys_ = 0;
};

}  // namespace
}  // namespace lockstep::kernels
