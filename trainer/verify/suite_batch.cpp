#include "trainer/verify/suite_batch.h"

#include <random>

#include "trainer/step/training_run.h"

namespace lockstep::trainer {

TokenBatch suite_batch(const Job& job, int64_t vocabulary, int64_t step) {
  std::mt19937_64 random(static_cast<uint64_t>(job.debug.seed) * 1000003 + static_cast<uint64_t>(step));
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  TokenBatch batch{job.training.global_batch_size, job.training.seq_len, {}, {}};
  batch.first_sample = (step - 1) * batch.rows;
  const int64_t silent_row = batch.rows > 1 ? below(batch.rows) : -1;
  for (int64_t row = 0; row < batch.rows; ++row) {
    const int64_t period = 1 + below(batch.seq_len), ignored = 1 + below(4);
    std::vector<int64_t> tokens;
    for (int64_t i = 0; i < batch.seq_len; ++i) {
      const bool repeats = i >= period && below(3) == 0;
      tokens.push_back(repeats ? tokens[static_cast<size_t>(i - period)] : below(vocabulary));
      const bool is_silent = row == silent_row || below(8) < ignored;
      batch.labels.push_back(is_silent && i + row > 0 ? kIgnoredLabel : below(vocabulary));
    }
    tokens.front() = 0, tokens.back() = vocabulary - 1;
    batch.tokens.insert(batch.tokens.end(), tokens.begin(), tokens.end());
  }
  if (job.training.pack_documents)
    for (int64_t i = 0; i < batch.rows * batch.seq_len; ++i) {
      const bool begins = i % batch.seq_len == 0 || below(5) == 0;
      batch.positions.push_back(begins ? 0 : batch.positions.back() + 1);
    }
  return batch;
}

}  // namespace lockstep::trainer
