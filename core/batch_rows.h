#pragma once
#include <cstdint>
#include <vector>

#include "core/range.h"

namespace lockstep {

/// Which rows of the global batch a microbatch holds: equal runs of consecutive rows, one per data-parallel replica.
///
/// Row i of the microbatch is global row first + (i / run) * stride + i % run.
struct BatchRows {
  int64_t first = 0;
  int64_t count = 0;   ///< rows, each of them one sample; 0: not known
  int64_t run = 0;     ///< rows in a run; 0: all are consecutive
  int64_t stride = 0;  ///< global rows from the start of a run to that of the next

  struct Run {
    Range rows;     ///< of the microbatch
    int64_t shift;  ///< what is added to them to give global rows
  };

  /// The same rows as a first dimension of `size` sees them, which may have several entries for each (tokens of a
  /// sample, say). No shift if it cannot be a batch.
  BatchRows seen_by(int64_t size) const;
  /// `rows` of the microbatch, cut into pieces of one run each; none of an empty range.
  std::vector<Run> runs(Range rows) const;
};

}  // namespace lockstep
