#pragma once
#include <future>
#include <optional>

#include "trainer/data/dataset.h"

namespace lockstep::trainer {

/// Reads a run's batches, each while the step before it is made: on a thread of its own, one batch ahead.
class BatchReader {
 public:
  /// `data` is borrowed; batches are of `rows` samples.
  BatchReader(const Dataset& data, int64_t rows) : data_(data), rows_(rows) {}

  /// The batch from sample `start` on, as Dataset::batch() gives it or throws, and the beginning of the one behind it.
  TokenBatch take(int64_t start);

 private:
  struct Ahead {
    int64_t start;
    std::future<TokenBatch> batch;
  };

  const Dataset& data_;
  int64_t rows_;
  std::optional<Ahead> ahead_;  ///< its end is waited for where it is dropped
};

}  // namespace lockstep::trainer
