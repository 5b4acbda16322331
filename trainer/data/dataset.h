#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/job/registry.h"

namespace lockstep::trainer {

struct Job;

/// Rows of token and label ids, row-major: label [r, t] follows token [r, t].
struct TokenBatch {
  int64_t rows = 0;
  int64_t seq_len = 0;
  std::vector<int64_t> tokens;
  std::vector<int64_t> labels;
  int64_t first_sample = 0;  ///< global index of row 0
};

/// Training data as samples in a global order. What stands at a global sample index never depends on ranks, batches or
/// earlier reads.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t samples() const = 0;

  /// Rows `start` ... `start + count - 1` in global sample order; `start` >= 0 goes on through epochs without end.
  /// FileError when the data cannot be read or became shorter since it was opened. Safe to call from several threads.
  virtual TokenBatch batch(int64_t start, int64_t count) const = 0;
};

/// Opens a job's data for a model that knows `vocabulary` tokens. BadInput says what does not fit.
using DatasetBuilder = std::unique_ptr<Dataset> (*)(const Job& job, int64_t vocabulary);

/// By training.dataset.
const Registry<DatasetBuilder>& dataset_registry();

std::unique_ptr<Dataset> make_dataset(const Job& job, int64_t vocabulary);

}  // namespace lockstep::trainer
