#include "tools/bench/rows/process_rows.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/transport/streams/stream_transport.h"
#include "tools/bench/bench_run.h"
#include "tools/bench/peers/two_processes.h"

namespace lockstep::bench {
namespace {

/// Steps whose collectives travel while something computes, beside such as wait.
struct Case {
  const char* step;   ///< name of its row, without the tokens
  const char* waits;  ///< and what those of its waits begin with
  const char* mesh;
  BatchSize size;
  bool tcp = false;

  int64_t tokens() const { return size.rows * size.length; }
  bool is_async_tensor_parallel() const { return std::string_view(mesh) == "tp=2"; }
};
constexpr Case kCases[] = {{"processes", "", "dp_shard=2", {2, 256}},
                           {"processes", "", "dp_shard=2", {8, 512}},
                           {"async_tp", "async_tp_", "tp=2", {2, 256}},
                           {"async_tp", "async_tp_", "tp=2", {8, 512}},
                           {"async_tp_tcp", "async_tp_tcp_", "tp=2", {2, 256}, true},
                           {"async_tp_tcp", "async_tp_tcp_", "tp=2", {8, 512}, true}};

std::string step_name(const Case& each) { return fmt::format("{}_{}_tokens", each.step, each.tokens()); }

/// What a step stands still for.
struct Wait {
  const char* name;
  CollectiveKind kind;
};
constexpr Wait kWaits[] = {{"gather", CollectiveKind::kAllGather}, {"reduce", CollectiveKind::kReduceScatter}};

std::string wait_name(const Wait& wait, const Case& each) {
  return fmt::format("{}{}_wait_{}_tokens", each.waits, wait.name, each.tokens());
}

/// One rank's runs: of each case one in which collectives travel meanwhile, and one that waits for each.
using Runs = std::vector<std::shared_ptr<BenchRun>>;
size_t overlapping(size_t number) { return 2 * number; }
size_t blocking(size_t number) { return 2 * number + 1; }

std::shared_ptr<StreamTransport> transport_of(int rank, std::unique_ptr<Stream> stream) {
  std::vector<std::unique_ptr<Stream>> streams(2);
  streams[static_cast<size_t>(1 - rank)] = std::move(stream);
  return std::make_shared<StreamTransport>(rank, std::move(streams), std::chrono::seconds{60});
}

/// Whether any of its rows is asked for.
bool is_wanted(const Case& each, const std::string& patterns) {
  return fits(step_name(each), patterns) ||
         std::ranges::any_of(kWaits, [&](const auto& wait) { return fits(wait_name(wait, each), patterns); });
}

/// Null of cases that nobody asked for.
Runs runs_of(Ends ends, const std::string& patterns) {
  at::set_num_threads(1);
  const auto memory = transport_of(ends.rank, std::move(ends.memory)),
             tcp = transport_of(ends.rank, std::move(ends.tcp));
  Runs runs;
  for (const auto& each : kCases)
    for (const bool overlap : {true, false}) {
      runs.emplace_back();
      if (!is_wanted(each, patterns)) continue;
      auto job = bench_job(each.size, trainer::parse_mesh(each.mesh), Numerics::kCanonical);
      job.parallelism.enable_async_tensor_parallel = overlap && each.is_async_tensor_parallel();
      trainer::TrainingRun::Options options;
      options.local_ranks = {ends.rank};
      options.transport = each.tcp ? tcp : memory;
      options.overlap = overlap;
      runs.back() = std::make_shared<BenchRun>(job, options);
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
PairedTiming waits(TwoProcesses& both, const Runs& runs, size_t number, CollectiveKind kind,
                   const PairedOptions& options) {
  std::vector<double> ours, peers, ratios;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.budget);
  for (int pair = 0; pair < options.pairs && (pair < 5 || std::chrono::steady_clock::now() < end); ++pair) {
    ours.push_back(waited(both, runs, overlapping(number), kind));
    peers.push_back(waited(both, runs, blocking(number), kind));
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
  for (const auto& each : kCases) {
    names.push_back(step_name(each));
    for (const auto& wait : kWaits) names.push_back(wait_name(wait, each));
  }
  require_fit("processes", names, patterns);
  Runs runs;  // this process's; the other has its own
  TwoProcesses both([&](Ends ends) { return steps_of(runs = runs_of(std::move(ends), patterns)); });
  const PairedOptions options{.pairs = 101, .seconds = std::min(0.3, seconds), .budget = seconds};
  for (size_t i = 0; i < std::size(kCases); ++i) {
    const auto& each = kCases[i];
    const auto measure = [&](const char* peer_name, const std::function<void()>& peer) {
      const auto timing = time_in_pairs([&] { both.run(overlapping(i), 1); }, peer, options);
      report(make_row(step_name(each), timing, peer_name, "ms", 1e3));
    };
    if (fits(step_name(each), patterns)) {
      if (!each.is_async_tensor_parallel()) measure("threads", threaded_step(both, each.size));
      measure("blocking", [&] { both.run(blocking(i), 1); });
    }
    for (const auto& wait : kWaits)
      if (fits(wait_name(wait, each), patterns))
        report(make_row(wait_name(wait, each), waits(both, runs, i, wait.kind, options), "blocking", "ms", 1e3));
  }
}

}  // namespace lockstep::bench
