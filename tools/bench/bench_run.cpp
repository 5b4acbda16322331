#include "tools/bench/bench_run.h"

namespace lockstep::bench {
namespace {

trainer::TrainingRun::Options on_mesh_of(const trainer::Job& job, trainer::TrainingRun::Options options) {
  options.mesh = trainer::mesh_of(job);
  return options;
}

}  // namespace

trainer::TokenBatch token_batch(const BatchSize& size) {
  constexpr int64_t kVocabulary = 2048;
  trainer::TokenBatch batch{size.rows, size.length, {}, {}};
  for (int64_t i = 0; i < size.rows * size.length; ++i) {
    batch.tokens.push_back(i * 7919 % kVocabulary);
    batch.labels.push_back((i + 1) * 7919 % kVocabulary);
  }
  return batch;
}

trainer::Job bench_job(const BatchSize& size, const trainer::MeshDegrees& degrees, Numerics numerics) {
  trainer::Job job;
  trainer::set_mesh(job, degrees);
  job.training.global_batch_size = size.rows;
  job.training.local_batch_size = size.rows / degrees.data_parallel();
  job.training.seq_len = size.length;
  job.numerics.mode = to_text(numerics);
  return job;
}

BenchRun::BenchRun(const trainer::Job& job, trainer::TrainingRun::Options options)
    : run_(job, on_mesh_of(job, std::move(options))),
      batch_(token_batch({job.training.global_batch_size, job.training.seq_len})) {}

}  // namespace lockstep::bench
