#pragma once
#include <cstdint>
#include <vector>

#include "rng/subarray.h"

namespace lockstep::rng {

/// A box as runs of consecutive indices: `count` elements from `index` on, written from `offset` on with `stride`.
struct Run {
  uint64_t index;
  int64_t count, offset, stride;
};

/// Iterates over the runs of a subarray in the order of their indices, joining dimensions that are contiguous in both
/// the global tensor and the output.
class Runs {
 public:
  /// One of the loops around a run: how far index and offset move per turn.
  struct Loop {
    int64_t length;
    uint64_t index_stride;
    int64_t stride, position;
  };

  explicit Runs(const Subarray& subarray);

  /// Before the first call of `next`: the first run (all have its count and stride) and the loops, outermost first.
  const Run& first() const { return run_; }
  const std::vector<Loop>& loops() const { return loops_; }

  /// The next run, false after the last one.
  bool next(Run& run);

 private:
  void step();

  std::vector<Loop> loops_;
  Run run_{};
  bool done_ = false;
};

}  // namespace lockstep::rng
