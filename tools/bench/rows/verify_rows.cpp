#include "tools/bench/rows/verify_rows.h"

#include <ATen/Parallel.h>

#include <array>

#include "core/error.h"
#include "runtime/transport/transport.h"
#include "tools/bench/bench_run.h"
#include "trainer/state/replicas.h"
#include "trainer/verify/mesh_comparison.h"

namespace lockstep::bench {
namespace {

constexpr BatchSize kDemo{4, 128};
constexpr PairedOptions kFewSteps{.pairs = 31, .seconds = 0, .own_time = true};

/// Steps of the job on its mesh, each checked by a `Checker` of that job.
template <class Checker>
class CheckedSteps {
 public:
  explicit CheckedSteps(const trainer::Job& job) : checker_(job, {.mesh = trainer::mesh_of(job)}) {}
  void operator()() { agree_ &= checker_.check(++step_, batch_, 1e-3).agrees(); }
  bool agree() const { return agree_; }

 private:
  Checker checker_;
  trainer::TokenBatch batch_ = token_batch(kDemo);
  int64_t step_ = 0;
  bool agree_ = true;
};

BenchRow verified_step(const char* name) {
  const auto job = bench_job(kDemo, trainer::parse_mesh("dp_shard=2,tp=2"), Numerics::kCanonical);
  CheckedSteps<trainer::StepVerifier> ours(job);
  BenchRun mesh(job), device(bench_job(kDemo, {}, Numerics::kCanonical));
  const auto peer = [&] {
    mesh();
    device();
  };
  auto row = make_row(name, time_in_pairs(ours, peer, kFewSteps), "two steps", "ms", 1e3);
  LOCKSTEP_CHECK(ours.agree());
  return row;
}

BenchRow replica_check(const char* name) {
  const auto job = bench_job(kDemo, trainer::parse_mesh("dp_replicate=4"), Numerics::kCanonical);
  BenchRun checked(job), plain(job);
  trainer::ReplicaDigests digests;
  checked.run().on_update([&](const auto& entry) { digests.add(entry, trainer::Copies::kParameters); });
  bool agree = true;
  const auto ours = [&] {
    checked();
    agree &= digests.difference(checked.run().state(), {}).empty();
  };
  auto row = make_row(name, time_in_pairs(ours, plain, kFewSteps), "unchecked", "ms", 1e3);
  LOCKSTEP_CHECK(agree);
  return row;
}

/// What ranks say and compare before the data of a collective moves, for each message of a step.
class Headers {
 public:
  explicit Headers(trainer::TrainingRun& run) {
    for (const auto& [axis, kinds] : run.world().traffic().by_axis())
      for (const auto& kind : kinds) messages_ += kind.count * (run.mesh().axis_size(run.mesh().find_axis(axis)) - 1);
    LOCKSTEP_CHECK(messages_ > 0);
  }

  bool agree() const {
    bool agree = true;
    for (int64_t m = 0; m < messages_; ++m) agree &= of(m) == of(m);
    return agree;
  }

 private:
  /// An op, and what a tensor of four dimensions and two axes is told apart by.
  static MessageHeader of(int64_t message) {
    const std::array<uint64_t, 8> subject{static_cast<uint64_t>(message), 2, 3, 4, 5, 6, 7, 8};
    const std::array<int, 4> ranks{0, 1, 2, 3};
    return {static_cast<uint64_t>(message),
            purpose_digest("mesh::weight_gradient", subject),
            1,
            6,
            group_digest(ranks),
            4096};
  }

  int64_t messages_ = 0;
};

BenchRow collectives_check(const char* name) {
  const auto job = bench_job(kDemo, trainer::parse_mesh("dp_shard=2,tp=2"), Numerics::kCanonical);
  BenchRun compared(job), plain(job);
  compared.run().world().traffic().clear();
  compared();
  const Headers headers(compared.run());
  bool agree = true;
  const auto ours = [&] {
    compared();
    agree &= headers.agree();
  };
  auto row = make_row(name, time_in_pairs(ours, plain, kFewSteps), "uncompared", "ms", 1e3);
  LOCKSTEP_CHECK(agree);
  return row;
}

/// Mode ops, of one op of `sample`.
template <Numerics kNumerics, int64_t kSample>
BenchRow ops_check(const char* name) {
  const auto job = bench_job(kDemo, trainer::parse_mesh("dp_shard=2,tp=2"), kNumerics);
  BenchRun watched(job), plain(job);
  trainer::OpVerifier verifier(watched.run(), kSample);
  trainer::StepCheck check;
  const auto ours = [&] {
    const trainer::OpVerifier::Watch watch(verifier);
    watched();
    verifier.judge(check);
  };
  auto row = make_row(name, time_in_pairs(ours, plain, kFewSteps), "unwatched", "ms", 1e3);
  LOCKSTEP_CHECK(check.agrees() && check.ops->compared_ops > 0);
  return row;
}

/// What `lockstep verify` makes of a step under native numerics: the pair in double, the run that trains with a sample
/// of its ops, and the shaken step.
BenchRow native_verified_step(const char* name) {
  const auto job = bench_job(kDemo, trainer::parse_mesh("dp_shard=2,tp=2"), Numerics::kNative);
  CheckedSteps<trainer::MeshComparison> ours(job);
  BenchRun plain(job);
  auto row = make_row(name, time_in_pairs(ours, plain, kFewSteps), "unchecked", "ms", 1e3);
  LOCKSTEP_CHECK(ours.agree());
  return row;
}

struct Case {
  const char* name;
  BenchRow (*measure)(const char* name);
};

constexpr Case kCases[] = {{"verified_step_vs_two_steps", verified_step},
                           {"replica_check", replica_check},
                           {"collectives_check", collectives_check},
                           {"ops_check_sampled", ops_check<Numerics::kCanonical, 50>},
                           {"ops_check_all", ops_check<Numerics::kCanonical, 1>},
                           {"native_verified_step", native_verified_step},
                           {"native_ops_check_sampled", ops_check<Numerics::kNative, 50>},
                           {"native_ops_check_all", ops_check<Numerics::kNative, 1>}};

}  // namespace

void measure_verify(const std::string& patterns, const std::function<void(const BenchRow&)>& report) {
  at::set_num_threads(1);
  std::vector<std::string> names;
  for (const auto& each : kCases) names.emplace_back(each.name);
  require_fit("verify", names, patterns);
  for (const auto& each : kCases)
    if (fits(each.name, patterns)) report(each.measure(each.name));
}

}  // namespace lockstep::bench
