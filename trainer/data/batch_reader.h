#pragma once
#include <future>
#include <optional>
#include <vector>

#include "core/range.h"
#include "trainer/data/dataset.h"

namespace lockstep::trainer {

/// Reads a run's batches, each while the step before it is made: on a thread of its own, one batch ahead.
class BatchReader {
 public:
  /// `data` is borrowed; batches are of `rows` samples. `own`: the rows of a batch that are read, in any order, perhaps
  /// twice; of the others tokens are 0, and there are no labels. None: all.
  BatchReader(const Dataset& data, int64_t rows, std::vector<Range> own = {});

  /// The batch from sample `start` on, as Dataset::batch() gives it or throws, and the beginning of the one behind it.
  TokenBatch take(int64_t start);

  /// The same without the one behind it.
  TokenBatch read(int64_t start) const;

 private:
  struct Ahead {
    int64_t start;
    std::future<TokenBatch> batch;
  };

  const Dataset& data_;
  int64_t rows_;
  std::vector<Range> own_;      ///< ascending, apart
  std::optional<Ahead> ahead_;  ///< its end is waited for where it is dropped
};

}  // namespace lockstep::trainer
