#include "trainer/data/batch_reader.h"

namespace lockstep::trainer {

TokenBatch BatchReader::take(int64_t start) {
  const bool is_ahead = ahead_ && ahead_->start == start;
  auto batch = is_ahead ? ahead_->batch.get() : data_.batch(start, rows_);
  const auto read = [this, next = start + rows_] { return data_.batch(next, rows_); };
  ahead_.emplace(Ahead{start + rows_, std::async(std::launch::async, read)});
  return batch;
}

}  // namespace lockstep::trainer
