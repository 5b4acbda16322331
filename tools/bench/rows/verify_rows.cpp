#include "tools/bench/rows/verify_rows.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "tools/bench/bench_run.h"
#include "trainer/state/replicas.h"
#include "trainer/verify/step_verifier.h"

namespace lockstep::bench {
namespace {

constexpr BatchSize kDemo{4, 128};
constexpr PairedOptions kFewSteps{.pairs = 31, .seconds = 0};

BenchRow verified_step() {
  const auto degrees = trainer::parse_mesh("dp_shard=2,tp=2");
  const auto job = bench_job(kDemo, degrees, Numerics::kCanonical);
  trainer::TrainingRun::Options options;
  options.mesh = degrees;
  trainer::StepVerifier verifier(job, options);
  const auto batch = token_batch(kDemo);
  BenchRun mesh(job), device(bench_job(kDemo, {}, Numerics::kCanonical));
  int64_t step = 0;
  bool agree = true;
  const auto ours = [&] { agree &= verifier.check(++step, batch, 1e-3).agrees(); };
  const auto peer = [&] {
    mesh();
    device();
  };
  auto row = make_row("verified_step_vs_two_steps", time_in_pairs(ours, peer, kFewSteps), "two steps", "ms", 1e3);
  LOCKSTEP_CHECK(agree);
  return row;
}

BenchRow replica_check() {
  const auto job = bench_job(kDemo, trainer::parse_mesh("dp_replicate=4"), Numerics::kCanonical);
  BenchRun checked(job), plain(job);
  bool agree = true;
  const auto ours = [&] {
    checked();
    agree &= trainer::replica_difference(checked.run().state(), {}, trainer::Copies::kParameters).empty();
  };
  auto row = make_row("replica_check", time_in_pairs(ours, plain, kFewSteps), "unchecked", "ms", 1e3);
  LOCKSTEP_CHECK(agree);
  return row;
}

}  // namespace

std::vector<BenchRow> verify_rows() {
  at::set_num_threads(1);
  return {verified_step(), replica_check()};
}

}  // namespace lockstep::bench
