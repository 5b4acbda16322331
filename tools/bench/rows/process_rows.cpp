#include "tools/bench/rows/process_rows.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/transport/streams/stream_transport.h"
#include "tools/bench/bench_run.h"
#include "tools/bench/peers/two_processes.h"

namespace lockstep::bench {
namespace {

constexpr BatchSize kSizes[] = {{2, 256}, {8, 512}};

int64_t tokens(size_t size) { return kSizes[size].rows * kSizes[size].length; }
std::string step_name(size_t size) { return fmt::format("processes_{}_tokens", tokens(size)); }

/// What a step stands still for.
struct Wait {
  const char* name;
  CollectiveKind kind;
};
constexpr Wait kWaits[] = {{"gather", CollectiveKind::kAllGather}, {"reduce", CollectiveKind::kReduceScatter}};

std::string wait_name(const Wait& wait, size_t size) {
  return fmt::format("{}_wait_{}_tokens", wait.name, tokens(size));
}

/// One rank's runs: of each size one whose gathers and reductions travel while blocks compute, and one that waits for
/// each.
using Runs = std::vector<std::shared_ptr<BenchRun>>;
size_t overlapping(size_t size) { return 2 * size; }
size_t blocking(size_t size) { return 2 * size + 1; }

Runs runs_of(Ends ends) {
  at::set_num_threads(1);
  std::vector<std::unique_ptr<Stream>> streams(2);
  streams[static_cast<size_t>(1 - ends.rank)] = std::move(ends.memory);
  const auto transport = std::make_shared<StreamTransport>(ends.rank, std::move(streams), std::chrono::seconds{60});
  Runs runs;
  for (const auto& size : kSizes)
    for (const bool overlap : {true, false}) {
      const auto job = bench_job(size, trainer::parse_mesh("dp_shard=2"), Numerics::kCanonical);
      trainer::TrainingRun::Options options;
      options.local_ranks = {ends.rank};
      options.transport = transport;
      options.overlap = overlap;
      runs.push_back(std::make_shared<BenchRun>(job, options));
    }
  return runs;
}

TwoProcesses::Works steps_of(const Runs& runs) {
  TwoProcesses::Works works;
  for (const auto& run : runs) works.push_back([run] { (*run)(); });
  return works;
}

/// Seconds of one step in which this rank stood still for these.
double waited(TwoProcesses& both, const Runs& runs, size_t index, CollectiveKind kind) {
  const auto all = [&] { return runs[index]->run().world().part<ExchangesInFlight>().waited(kind); };
  const double before = all();
  both.run(index, 1);
  return all() - before;
}

/// With and without overlap, in turns.
PairedTiming waits(TwoProcesses& both, const Runs& runs, size_t size, CollectiveKind kind,
                   const PairedOptions& options) {
  std::vector<double> ours, peers, ratios;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.budget);
  for (int pair = 0; pair < options.pairs && (pair < 5 || std::chrono::steady_clock::now() < end); ++pair) {
    ours.push_back(waited(both, runs, overlapping(size), kind));
    peers.push_back(waited(both, runs, blocking(size), kind));
    ratios.push_back(ours.back() / peers.back());
  }
  return {median(ours), median(peers), median(ratios), median_upper_bound(ratios)};
}

/// A step on one rank with two threads, in a process that else has one.
std::function<void()> threaded_step(const TwoProcesses& both, const BatchSize& size) {
  const auto job = bench_job(size, trainer::parse_mesh("one device"), Numerics::kCanonical);
  return [&both, run = std::make_shared<BenchRun>(job)] {
    both.run_alone([&] {
      at::set_num_threads(2);
      (*run)();
      at::set_num_threads(1);
    });
  };
}

}  // namespace

void measure_processes(const std::string& patterns, double seconds,
                       const std::function<void(const BenchRow&)>& report) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    names.push_back(step_name(i));
    for (const auto& wait : kWaits) names.push_back(wait_name(wait, i));
  }
  require_fit("processes", names, patterns);
  Runs runs;  // this process's; the other has its own
  TwoProcesses both([&runs](Ends ends) { return steps_of(runs = runs_of(std::move(ends))); });
  const PairedOptions options{.pairs = 101, .seconds = std::min(0.3, seconds), .budget = seconds};
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    const auto measure = [&](const char* peer_name, const std::function<void()>& peer) {
      const auto timing = time_in_pairs([&] { both.run(overlapping(i), 1); }, peer, options);
      report(make_row(step_name(i), timing, peer_name, "ms", 1e3));
    };
    if (fits(step_name(i), patterns)) {
      measure("threads", threaded_step(both, kSizes[i]));
      measure("blocking", [&] { both.run(blocking(i), 1); });
    }
    for (const auto& wait : kWaits)
      if (fits(wait_name(wait, i), patterns))
        report(make_row(wait_name(wait, i), waits(both, runs, i, wait.kind, options), "blocking", "ms", 1e3));
  }
}

}  // namespace lockstep::bench
