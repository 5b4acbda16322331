#pragma once
#include "trainer/step/training_run.h"

namespace lockstep::bench {

/// Sequences of a step.
struct BatchSize {
  int64_t rows, length;
};

/// As many tokens as the job's global batch has, no two neighbours alike.
trainer::TokenBatch token_batch(const BatchSize& size);

/// The Llama debugmodel with a batch of this size on these degrees; each of `degrees.data_parallel()` ranks takes its
/// rows at once.
trainer::Job bench_job(const BatchSize& size, const trainer::MeshDegrees& degrees, Numerics numerics);

/// One run of the job and its next step.
class BenchRun {
 public:
  explicit BenchRun(const trainer::Job& job, trainer::TrainingRun::Options options = {});
  void operator()() { run_.step(++step_, batch_, 1e-3); }
  trainer::TrainingRun& run() { return run_; }

 private:
  trainer::TrainingRun run_;
  trainer::TokenBatch batch_;
  int64_t step_ = 0;
};

}  // namespace lockstep::bench
