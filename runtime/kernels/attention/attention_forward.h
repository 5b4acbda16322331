#pragma once
// Attention forward for one instruction set; see tile.h for how it is included.
#include <cmath>

#include "runtime/kernels/attention/attention_dropout.h"
#include "runtime/kernels/attention/attention_tile.h"

namespace lockstep::kernels {
namespace {

/// Query rows are counted with the heads of the group inside: row * group + head. Some of them at a time go over all
/// blocks of keys.
template <class Tiling, class Input>
class ForwardKernel {
  using Set = typename Tiling::Set;
  using T = typename Set::Element;
  static constexpr int kRows = Tiling::kRows, kColumns = Tiling::kColumns, kVectors = kSumLanes / Set::kLanes;
  static constexpr int64_t kBlock = 4 * kRows;

 public:
  LOCKSTEP_TILE_TARGET static void run(const ForwardPiece<Input, T>& piece) { ForwardKernel(piece).run(); }

 private:
  LOCKSTEP_TILE_TARGET explicit ForwardKernel(const ForwardPiece<Input, T>& piece)
      : piece_(piece),
        shape_(piece.work->shape),
        scale_(static_cast<T>(shape_.scale * kLog2E)),
        width_(round_up(shape_.width, kColumns)) {
    const int64_t panels = round_up(shape_.keys, kColumns) * shape_.depth, values = shape_.keys * width_;
    const int64_t dense = kBlock * shape_.depth, queries = kBlock / kRows * Tiling::kPacked * shape_.depth;
    T* memory = scratch<T, Purpose::kAttention>().reserve(panels + values + dense + queries +
                                                          kBlock * (kWeightStride + width_ + kSumLanes + 1));
    const auto take = [&memory](int64_t size) { return memory += size, memory - size; };
    keys_ = take(panels);
    values_ = take(values);
    dense_ = take(dense);
    queries_ = take(queries);
    weights_ = take(kBlock * kWeightStride);
    sums_ = take(kBlock * width_);
    lanes_ = take(kBlock * kSumLanes);
    highest_ = take(kBlock);
  }

  LOCKSTEP_TILE_TARGET void run() {
    pack_for_dots<Tiling>(piece_.work->key.at(piece_.batch, piece_.head), shape_.keys, shape_.depth, keys_);
    pack_for_sums<Tiling>(piece_.work->value.at(piece_.batch, piece_.head), shape_.keys, shape_.width, values_);
    const int64_t end = (piece_.first + piece_.rows) * shape_.group;
    for (first_ = piece_.first * shape_.group; first_ < end; first_ += kBlock) {
      rows_ = std::min(kBlock, end - first_);
      start_rows();
      const int64_t keys = keys_of(rows_ - 1);
      for (block_ = first_keys_of_rows_[0] / kKeyBlock * kKeyBlock; block_ < keys; block_ += kKeyBlock) {
        block_keys_ = std::min(kKeyBlock, keys - block_);
        add_block();
      }
      finish_rows();
    }
  }

  /// Rows of this block from here on; those behind its end stand for the last one.
  LOCKSTEP_TILE_INLINE int64_t keys_of(int64_t row) const {
    return shape_.keys_of((first_ + std::min(row, rows_ - 1)) / shape_.group);
  }
  LOCKSTEP_TILE_INLINE int64_t head_of(int64_t row) const {
    return piece_.head * shape_.group + (first_ + row) % shape_.group;
  }
  LOCKSTEP_TILE_INLINE int64_t first_key_of(int64_t row) const {
    return shape_.first_key_of(piece_.batch, (first_ + std::min(row, rows_ - 1)) / shape_.group);
  }
  /// A row attends keys start_of() .. count_of() - 1 of this block.
  LOCKSTEP_TILE_INLINE int64_t count_of(int64_t row) const {
    return std::clamp<int64_t>(keys_of_rows_[row] - block_, 0, kKeyBlock);
  }
  LOCKSTEP_TILE_INLINE int64_t start_of(int64_t row) const {
    return std::clamp<int64_t>(first_keys_of_rows_[row] - block_, 0, kKeyBlock);
  }

  LOCKSTEP_TILE_TARGET void start_rows() {
    for (int64_t row = 0; row < kBlock; ++row)
      keys_of_rows_[row] = keys_of(row), first_keys_of_rows_[row] = first_key_of(row);
    copy_rows(piece_.work->query, piece_.batch, piece_.head, shape_.group, first_, rows_, shape_.depth, dense_);
    pack<kRows>(PackWork<T, T>{dense_, shape_.depth, 1, rows_, shape_.depth, queries_, Tiling::kPacked,
                               Tiling::kPacked * shape_.depth});
    std::fill(sums_, sums_ + kBlock * width_, T(0));
    std::fill(lanes_, lanes_ + kBlock * kSumLanes, T(0));
    std::fill(highest_, highest_ + kBlock, -std::numeric_limits<T>::infinity());
    for (int64_t row = 0; row < rows_; ++row)
      if (had_keys(row)) go_on(row);
  }

  /// Where a row of a tensor of the state begins.
  template <class Element>
  LOCKSTEP_TILE_INLINE Element* at(const HeadTensor<Element>& tensor, int64_t row) const {
    return tensor.at(piece_.batch, head_of(row)).data + (first_ + row) / shape_.group * tensor.row_stride;
  }

  /// In the calls before.
  LOCKSTEP_TILE_INLINE bool had_keys(int64_t row) const {
    const auto& weights = piece_.work->before.weights;
    return weights.data != nullptr && at(weights, row)[kAnyOfState] > 0;
  }

  LOCKSTEP_TILE_INLINE void go_on(int64_t row) {
    const T* weights = at(piece_.work->before.weights, row);
    std::copy_n(at(piece_.work->before.sums, row), shape_.width, sums_ + row * width_);
    std::copy_n(weights, kSumLanes, lanes_ + row * kSumLanes);
    highest_[row] = weights[kHighestOfState];
    if (std::isnan(highest_[row])) forget(row);
  }

  /// No call before gave this: from here on the row is NaN, whatever the bits of this one.
  LOCKSTEP_TILE_INLINE void forget(int64_t row) {
    std::fill_n(sums_ + row * width_, shape_.width, std::numeric_limits<T>::quiet_NaN());
    std::fill_n(lanes_ + row * kSumLanes, kSumLanes, std::numeric_limits<T>::quiet_NaN());
    highest_[row] = -std::numeric_limits<T>::infinity();
  }

  LOCKSTEP_TILE_INLINE void keep(int64_t row, bool any) const {
    T* weights = at(piece_.work->after.weights, row);
    std::copy_n(sums_ + row * width_, shape_.width, at(piece_.work->after.sums, row));
    std::copy_n(lanes_ + row * kSumLanes, kSumLanes, weights);
    weights[kHighestOfState] = any ? highest_[row] + T(0) : T(0);  // of two zeros, which is chance
    weights[kAnyOfState] = any ? T(1) : T(0);
  }

  LOCKSTEP_TILE_TARGET void add_block() {
    for (int64_t key = 0; key < block_keys_; key += kColumns)
      for (int64_t row = 0; row < rows_; row += kRows) {
        if (count_of(row + kRows - 1) <= key || start_of(row) >= key + kColumns) continue;
        Tiling::template run<Dot>(
            rows_ - row, kColumns,
            DotWork<T>{queries_ + row / kRows * Tiling::kPacked * shape_.depth, keys_ + (block_ + key) * shape_.depth,
                       Tiling::kPacked, kColumns, shape_.depth, weights_ + row * kWeightStride + key});
      }
    for (int64_t row = 0; row < rows_; ++row) find_weights(row);
    for (int64_t column = 0; column < shape_.width; column += kColumns)
      for (int64_t row = 0; row < rows_; row += kRows) {
        int64_t starts[kRows], counts[kRows];
        for (int i = 0; i < kRows; ++i) starts[i] = start_of(row + i), counts[i] = count_of(row + i);
        Tiling::template run<OverKeys>(
            rows_ - row, shape_.width - column,
            OverKeysWork<T>{weights_ + row * kWeightStride, values_ + column * shape_.keys + block_ * kColumns,
                            kColumns, starts, counts, sums_ + row * width_ + column, width_});
      }
  }

  /// Scores become weights; what was summed before is scaled to the new highest exponent.
  LOCKSTEP_TILE_TARGET void find_weights(int64_t row) {
    const int64_t start = start_of(row), whole = start / kSumLanes * kSumLanes;
    if (count_of(row) <= start) return;
    T* scores = weights_ + row * kWeightStride + whole;
    const int64_t skipped = start - whole, count = count_of(row) - whole, padded = round_up(count, kSumLanes);
    std::fill_n(scores, skipped, std::numeric_limits<T>::quiet_NaN());  // no maximum
    std::fill(scores + count, scores + padded, std::numeric_limits<T>::quiet_NaN());
    const T highest = highest_exponent(scores, padded, highest_[row]);
    if (highest > highest_[row]) rescale(row, rescaling(highest_[row] - highest));
    highest_[row] = highest;
    for (int64_t i = 0; i < padded; ++i) scores[i] = weight(scores[i] * scale_, highest);
    std::fill_n(scores, skipped, T(0));
    std::fill(scores + count, scores + padded, T(0));
    add_to_lanes(scores, padded, lanes_ + row * kSumLanes);
    if (shape_.dropout.share > 0) drop(row, start, count_of(row) - start);
  }

  LOCKSTEP_TILE_TARGET void drop(int64_t row, int64_t start, int64_t count) const {
    T factors[kKeyBlock];
    dropout_factors(shape_, piece_.batch, head_of(row), (first_ + row) / shape_.group, block_ + start, count, factors);
    T* weights = weights_ + row * kWeightStride + start;
    for (int64_t i = 0; i < count; ++i) weights[i] *= factors[i];
  }

  LOCKSTEP_TILE_INLINE T highest_exponent(const T* scores, int64_t count, T highest) const {
    typename Set::Vector lanes[kVectors];
    for (auto& lane : lanes) lane = Set::broadcast(highest);
    const auto scale = Set::broadcast(scale_);
    for (int64_t i = 0; i < count; i += kSumLanes)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        lanes[v] = Set::maximum(Set::rint(Set::multiply(Set::load(scores + i + v * Set::kLanes), scale)), lanes[v]);
    T all[kSumLanes];
    for (int v = 0; v < kVectors; ++v) Set::store(all + v * Set::kLanes, lanes[v]);
    for (const T lane : all) highest = lane > highest ? lane : highest;
    return highest;
  }

  LOCKSTEP_TILE_INLINE static void add_to_lanes(const T* weights, int64_t count, T* to) {
    typename Set::Vector lanes[kVectors];
    for (int v = 0; v < kVectors; ++v) lanes[v] = Set::load(to + v * Set::kLanes);
    for (int64_t i = 0; i < count; i += kSumLanes)
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) lanes[v] = Set::add(lanes[v], Set::load(weights + i + v * Set::kLanes));
    for (int v = 0; v < kVectors; ++v) Set::store(to + v * Set::kLanes, lanes[v]);
  }

  LOCKSTEP_TILE_INLINE void rescale(int64_t row, T factor) {
    for (int64_t i = 0; i < width_; ++i) sums_[row * width_ + i] *= factor;
    for (int lane = 0; lane < kSumLanes; ++lane) lanes_[row * kSumLanes + lane] *= factor;
  }

  LOCKSTEP_TILE_TARGET void finish_rows() {
    for (int64_t row = 0; row < rows_; ++row) {
      const bool any = keys_of_rows_[row] > first_keys_of_rows_[row] || had_keys(row);
      if (piece_.work->after.weights.data != nullptr) {
        keep(row, any);
        continue;
      }
      const auto output = piece_.work->output.at(piece_.batch, head_of(row));
      const auto log_sum = piece_.work->log_sum.at(piece_.batch, head_of(row));
      const int64_t to = (first_ + row) / shape_.group;
      const T denominator = sum_of_lanes<T>(lanes_ + row * kSumLanes);
      for (int64_t i = 0; i < shape_.width; ++i)
        output.data[to * output.row_stride + i] = any ? sums_[row * width_ + i] / denominator : T(0);
      log_sum.data[to * log_sum.row_stride] =
          any ? log_sum_of(denominator, highest_[row]) : -std::numeric_limits<T>::infinity();
    }
  }

  const ForwardPiece<Input, T>& piece_;
  const AttentionShape& shape_;
  const T scale_;
  const int64_t width_;  ///< of sums
  T *keys_, *values_, *dense_, *queries_, *weights_, *sums_, *lanes_, *highest_;
  int64_t first_ = 0, rows_ = 0;                               ///< rows of this block
  int64_t keys_of_rows_[kBlock], first_keys_of_rows_[kBlock];  ///< a division for each row, not for each tile
  int64_t block_ = 0, block_keys_ = 0;                         ///< keys of this block
};

}  // namespace
}  // namespace lockstep::kernels
