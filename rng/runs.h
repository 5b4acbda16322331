#pragma once
#include <cstdint>
#include <vector>

#include "rng/slice.h"

namespace lockstep::rng {

/// A box as runs of consecutive indices: `count` elements from `index` on, written from `offset` on with `stride`.
struct Run {
  uint64_t index;
  int64_t count, offset, stride;
};

/// Iterates over the runs of a slice in the order of their indices, joining dimensions that are contiguous in both the
/// global tensor and the output.
class Runs {
 public:
  explicit Runs(const Slice& slice);

  /// The next run, false after the last one.
  bool next(Run& run);

 private:
  struct Loop {
    int64_t length;
    uint64_t index_stride;
    int64_t stride, position;
  };

  void step();

  std::vector<Loop> loops_;  // outermost first, without the run itself
  Run run_{};
  bool done_ = false;
};

}  // namespace lockstep::rng
