#pragma once
#include <algorithm>

#include "runtime/kernels/products/tile_sizes.h"

namespace lockstep::kernels {

/// A run of rows or columns.
struct Block {
  int64_t first, count;
};

/// A run of positions.
struct Span {
  int64_t position, length;
};

/// Packs a factor of a product, whatever samples its positions belong to.
template <class Input, class T>
class FactorReader {
 public:
  using Pack = void (*)(const PackWork<Input, T>&);

  FactorReader(const Factor<Input>& factor, int64_t sample_length, Pack pack)
      : factor_(factor),
        sample_length_(sample_length),
        pack_(pack),
        is_regular_(factor.sample_stride == sample_length * factor.element_stride) {}

  const Factor<Input>& factor() const { return factor_; }
  int64_t sample_length() const { return sample_length_; }

  /// Whether positions up to `count` are one step apart: samples that follow one another are one long one.
  bool is_even(int64_t count) const { return is_regular_ || count <= sample_length_; }

  void pack(const Block& rows, const Span& span, T* to, int64_t stride, int64_t panel_stride) const {
    const int64_t run = is_regular_ ? std::max<int64_t>(span.position + span.length, 1) : sample_length_;
    for (int64_t done = 0; done < span.length;) {
      const int64_t sample = (span.position + done) / run, element = (span.position + done) % run;
      const int64_t length = std::min({run - element, span.length - done, kPackedRun});
      const Input* from = factor_.data + sample * factor_.sample_stride + element * factor_.element_stride;
      pack_({from + rows.first * factor_.row_stride, factor_.row_stride, factor_.element_stride, rows.count, length,
             to + done * stride, stride, panel_stride});
      done += length;
    }
  }

  /// Asks for part `part` of `parts` of what pack() will read. Nothing where lines are not to be foreseen.
  void prefetch(const Block& rows, const Span& span, int64_t part, int64_t parts) const {
    constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(Input));
    const bool along = factor_.element_stride == 1;  // the lines of a row, or those of a position
    if (rows.count == 0 || span.length == 0) return;
    if (!is_even(span.position + span.length) || (!along && factor_.row_stride != 1)) return;
    const int64_t distance = along ? factor_.row_stride : factor_.element_stride;
    const int64_t runs = along ? rows.count : span.length;
    const int64_t lines = ((along ? span.length : rows.count) + kLine - 1) / kLine;
    const Input* first = factor_.data + rows.first * factor_.row_stride + span.position * factor_.element_stride;
    const int64_t begin = runs * lines * part / parts, end = runs * lines * (part + 1) / parts;
    int64_t line = begin % lines;
    const Input* run = first + begin / lines * distance;
    for (int64_t i = begin; i < end; ++i) {
      __builtin_prefetch(run + line * kLine, 0, 2);
      if (++line == lines) line = 0, run += distance;
    }
  }

 private:
  static constexpr int64_t kPackedRun = 128;  ///< positions, so that what is written stays in the cache

  Factor<Input> factor_;
  int64_t sample_length_;
  Pack pack_;
  bool is_regular_;
};

}  // namespace lockstep::kernels
