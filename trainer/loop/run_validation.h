#pragma once
#include <memory>
#include <optional>

#include "trainer/data/batch_reader.h"
#include "trainer/job/job.h"
#include "trainer/metrics/validation.h"
#include "trainer/step/training_run.h"

namespace lockstep::trainer {

/// The validations of a run ([validation]): after step 1 and every validation.freq steps, on the first samples of data
/// of their own, in an order that the seed gives. Canonical: the same bits on every mesh. Training's are what they are
/// without it.
class RunValidation {
 public:
  /// Opens the data if the job wants it; BadInput, on all ranks, for what is wrong with them. Both are borrowed. A
  /// collective of the whole mesh.
  RunValidation(const Job& job, TrainingRun& run);

  bool is_due(int64_t step) const;

  /// After `step`. A collective of the whole mesh.
  ValidationMetrics validate(int64_t step) const;

 private:
  int64_t batches() const;
  TokenBatch batch(int64_t index) const;

  const Job& job_;
  TrainingRun& run_;
  std::unique_ptr<Dataset> data_;  ///< null: none is wanted
  std::optional<BatchReader> reader_;
};

/// The job that trains on what this one validates on.
Job job_of_validation(Job job);

}  // namespace lockstep::trainer
