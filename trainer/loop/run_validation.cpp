#include "trainer/loop/run_validation.h"

#include <algorithm>
#include <chrono>

#include "core/error.h"
#include "trainer/launch/together.h"

namespace lockstep::trainer {
namespace {

/// Datasets name the keys of training.
std::string of_validation(std::string text) {
  const std::string_view key = "training.dataset", own = "validation.dataset";
  for (auto at = text.find(key); at != text.npos; at = text.find(key, at + own.size()))
    text.replace(at, key.size(), own);
  return text;
}

}  // namespace

RunValidation::RunValidation(const Job& job, TrainingRun& run) : job_(job), run_(run) {
  if (!job.validation.enable) return;
  agreed(run.mesh(), [&] {
    try {
      data_ = make_dataset(job_of_validation(job), run.model().vocabulary());
    } catch (const BadInput& error) {
      fail<BadInput>("validation: {}", of_validation(error.what()));
    }
  });
  reader_.emplace(*data_, job.training.global_batch_size, run.own_rows());
}

bool RunValidation::is_due(int64_t step) const { return data_ && (step == 1 || step % job_.validation.freq == 0); }

/// The last one may have fewer samples than the others; no sample comes twice.
int64_t RunValidation::batches() const {
  const auto rows = job_.training.global_batch_size, all = (data_->samples() + rows - 1) / rows;
  return job_.validation.steps == -1 ? all : std::min(all, job_.validation.steps);
}

/// Rows beyond the last sample have no labels.
TokenBatch RunValidation::batch(int64_t index) const {
  const auto rows = job_.training.global_batch_size, start = index * rows;
  TokenBatch batch;
  agreed(run_.mesh(), [&] { batch = reader_->read(start); });
  const auto left = std::clamp<int64_t>(data_->samples() - start, 0, rows);
  std::fill(batch.labels.begin() + left * batch.seq_len, batch.labels.end(), kIgnoredLabel);
  return batch;
}

ValidationMetrics RunValidation::validate(int64_t step) const {
  const auto start = std::chrono::steady_clock::now();
  double loss_sum = 0, tokens = 0;
  for (int64_t i = 0; i < batches(); ++i) {
    const auto read = batch(i);
    const auto part = run_.evaluate(step, read, job_.validation.averages);
    loss_sum += part.loss_sum;
    tokens += part.tokens;
  }
  auto metrics = validation_metrics(loss_sum, tokens, data_->bytes_per_token());
  metrics.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return metrics;
}

Job job_of_validation(Job job) {
  job.training.dataset = job.validation.dataset;
  job.training.dataset_path = job.validation.dataset_path;
  job.training.seq_len = job.validation.seq_len.value_or(job.training.seq_len);
  return job;
}

}  // namespace lockstep::trainer
