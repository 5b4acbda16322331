#include "tools/bench/step_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include "core/error.h"
#include "tools/bench/numerics_rows.h"
#include "tools/bench/plain_llama.h"
#include "trainer/training_run.h"

namespace lockstep::bench {
namespace {

constexpr int64_t kVocabulary = 2048;
constexpr double kLearningRate = 1e-3;

/// Sequences of a step.
struct Size {
  int64_t rows, length;
};
constexpr Size kSmall{2, 256}, kLarge{8, 512};

trainer::Job job(const Size& size, Numerics numerics) {
  trainer::Job job;
  job.training.local_batch_size = job.training.global_batch_size = size.rows;
  job.training.seq_len = size.length;
  job.parallelism.data_parallel_shard_degree = 1;
  job.numerics.mode = to_text(numerics);
  return job;
}

trainer::TokenBatch token_batch(const Size& size) {
  trainer::TokenBatch batch{size.rows, size.length, {}, {}};
  for (int64_t i = 0; i < size.rows * size.length; ++i) {
    batch.tokens.push_back(i * 7919 % kVocabulary);
    batch.labels.push_back((i + 1) * 7919 % kVocabulary);
  }
  return batch;
}

/// One mesh and its next step.
class Run {
 public:
  Run(const char* mesh, const Size& size, Numerics numerics)
      : run_(job(size, numerics), {.mesh = trainer::parse_mesh(mesh)}), batch_(token_batch(size)) {}
  void operator()() { run_.step(++step_, batch_, kLearningRate); }
  int64_t parameter_count() { return run_.model().parameter_count(); }

 private:
  trainer::TrainingRun run_;
  trainer::TokenBatch batch_;
  int64_t step_ = 0;
};

/// The same in plain LibTorch.
class PlainRun {
 public:
  explicit PlainRun(const Size& size) : size_(size), llama_(size.length), batch_(token_batch(size)) {}
  void operator()() { llama_.step(sequences(batch_.tokens), sequences(batch_.labels), kLearningRate); }
  int64_t parameter_count() const { return llama_.parameter_count(); }

 private:
  at::Tensor sequences(const std::vector<int64_t>& values) const {
    return at::tensor(values).view({size_.rows, size_.length});
  }

  Size size_;
  PlainLlama llama_;
  trainer::TokenBatch batch_;
};

}  // namespace

std::vector<BenchRow> step_rows(const PairedOptions& options) {
  at::set_num_threads(1);
  Run one("one device", kSmall, Numerics::kNative), four("dp_shard=2,tp=2", kSmall, Numerics::kNative);
  PlainRun plain(kSmall);
  LOCKSTEP_CHECK_EQ(plain.parameter_count(), one.parameter_count());
  return {make_row("one_rank_vs_libtorch", time_in_pairs(one, plain, options), "libtorch", "ms", 1e3),
          make_row("simulated_2x2_vs_one_rank", time_in_pairs(four, one, options), "one rank", "ms", 1e3)};
}

std::vector<NumericsCase> step_cases() {
  std::vector<NumericsCase> all;
  for (const auto& size : {kSmall, kLarge}) {
    const auto name = fmt::format("step_{}_tokens", size.rows * size.length);
    all.push_back({name, [=](PairedOptions options) {
                     at::set_num_threads(1);
                     options.own_time = true;
                     Run ours("one device", size, Numerics::kCanonical);
                     PlainRun plain(size);
                     return make_row(name, time_in_pairs(ours, plain, options), "libtorch", "ms", 1e3);
                   }});
  }
  return all;
}

}  // namespace lockstep::bench
