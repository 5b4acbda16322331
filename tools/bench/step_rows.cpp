#include "tools/bench/step_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include "core/error.h"
#include "tools/bench/plain_llama.h"
#include "trainer/training_run.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kRows = 2, kLength = 256, kVocabulary = 2048;
constexpr double kLearningRate = 1e-3;

trainer::Job job() {
  trainer::Job job;
  job.training.local_batch_size = job.training.global_batch_size = kRows;
  job.training.seq_len = kLength;
  job.parallelism.data_parallel_shard_degree = 1;
  return job;
}

trainer::TokenBatch token_batch() {
  trainer::TokenBatch batch{kRows, kLength, {}, {}};
  for (int64_t i = 0; i < kRows * kLength; ++i) {
    batch.tokens.push_back(i * 7919 % kVocabulary);
    batch.labels.push_back((i + 1) * 7919 % kVocabulary);
  }
  return batch;
}

at::Tensor rows_of(const std::vector<int64_t>& values) { return at::tensor(values).view({kRows, kLength}); }

/// One mesh and its next step.
class Run {
 public:
  explicit Run(const char* mesh) : run_(job(), {.mesh = trainer::parse_mesh(mesh)}) {}
  void operator()() { run_.step(++step_, batch_, kLearningRate); }
  int64_t parameter_count() { return run_.model().parameter_count(); }

 private:
  trainer::TrainingRun run_;
  trainer::TokenBatch batch_ = token_batch();
  int64_t step_ = 0;
};

}  // namespace

std::vector<BenchRow> step_rows(const PairedOptions& options) {
  at::set_num_threads(1);
  Run one("one device"), four("dp_shard=2,tp=2");
  PlainLlama plain(kLength);
  LOCKSTEP_CHECK_EQ(plain.parameter_count(), one.parameter_count());
  const auto batch = token_batch();
  const auto plain_step = [&] { plain.step(rows_of(batch.tokens), rows_of(batch.labels), kLearningRate); };
  return {make_row("one_rank_vs_libtorch", time_in_pairs(one, plain_step, options), "libtorch", "ms", 1e3),
          make_row("simulated_2x2_vs_one_rank", time_in_pairs(four, one, options), "one rank", "ms", 1e3)};
}

}  // namespace lockstep::bench
