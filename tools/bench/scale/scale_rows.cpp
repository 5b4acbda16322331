#include "tools/bench/scale/scale_rows.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "tools/bench/bench_run.h"
#include "tools/bench/peers/contender.h"
#include "tools/bench/peers/rank_processes.h"

namespace lockstep::bench {
namespace {

constexpr BatchSize kSize{64, 32};
constexpr int kProcesses[] = {1, 2, 4, 8}, kSimulated[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

/// dp_shard has a sample for each rank at least; where there are more ranks, tp cuts those.
trainer::MeshDegrees mesh_of(int ranks) {
  trainer::MeshDegrees mesh;
  mesh.dp_shard = std::min<int64_t>(ranks, kSize.rows);
  mesh.tp = ranks / mesh.dp_shard;
  return mesh;
}

/// A step on the mesh of so many ranks, of which these processes are; gives nothing of interest.
Contender::Work step_of(int ranks, const trainer::Processes& processes) {
  at::set_num_threads(1);
  trainer::TrainingRun::Options options;
  if (processes.transport) options.local_ranks = {processes.rank};
  options.transport = processes.transport;
  const auto job = bench_job(kSize, mesh_of(ranks), Numerics::kCanonical);
  return [run = std::make_shared<BenchRun>(job, options)] { return (*run)(), 0.0; };
}

std::shared_ptr<Contender> simulated(int ranks) {
  return Contender::fork([ranks] { return step_of(ranks, {}); });
}

std::shared_ptr<Contender> one_each(int ranks) {
  return in_processes(ranks, [ranks](const trainer::Processes& processes) { return step_of(ranks, processes); });
}

struct Case {
  std::string name;
  int ranks;
  std::shared_ptr<Contender> (*start)(int);
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const int count : kProcesses) cases.push_back({fmt::format("processes_{}", count), count, one_each});
  for (const int count : kSimulated) cases.push_back({fmt::format("simulated_{}", count), count, simulated});
  return cases;
}

}  // namespace

void measure_scale(const std::string& patterns, double seconds, const std::function<void(const BenchRow&)>& report) {
  const auto cases = all_cases();
  std::vector<std::string> names;
  for (const auto& each : cases) names.push_back(each.name);
  require_fit("scale", names, patterns);
  const PairedOptions options{.pairs = 101, .seconds = std::min(0.3, seconds), .budget = seconds};
  const auto one = simulated(1);
  for (const auto& each : cases) {
    if (!fits(each.name, patterns)) continue;
    const auto many = each.start(each.ranks);
    auto row =
        make_row(each.name, time_in_pairs([&] { many->run(1); }, [&] { one->run(1); }, options), "one rank", "ms", 1e3);
    row.facts = {{"ranks", each.ranks},
                 {"tokens_per_second", 1e3 * static_cast<double>(kSize.rows * kSize.length) / row.ours},
                 {"peak_memory_bytes", many->peak_memory()}};
    report(row);
  }
}

}  // namespace lockstep::bench
