#include "tools/bench/process_rows.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "runtime/transport/stream_transport.h"
#include "tools/bench/bench_run.h"
#include "tools/bench/python_peer.h"
#include "tools/bench/two_processes.h"

namespace lockstep::bench {
namespace {

constexpr BatchSize kSizes[] = {{2, 256}, {8, 512}};

std::string name_of(const BatchSize& size) { return fmt::format("processes_{}_tokens", size.rows * size.length); }

/// One rank's step of each size.
TwoProcesses::Works steps_of(Ends ends) {
  at::set_num_threads(1);
  std::vector<std::unique_ptr<Stream>> streams(2);
  streams[static_cast<size_t>(1 - ends.rank)] = std::move(ends.memory);
  const auto transport = std::make_shared<StreamTransport>(ends.rank, std::move(streams), std::chrono::seconds{60});
  TwoProcesses::Works works;
  for (const auto& size : kSizes) {
    const auto job = bench_job(size, trainer::parse_mesh("dp_shard=2"), Numerics::kCanonical);
    trainer::TrainingRun::Options options;
    options.local_ranks = {ends.rank};
    options.transport = transport;
    works.push_back([run = std::make_shared<BenchRun>(job, options)] { (*run)(); });
  }
  return works;
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
  for (const auto& size : kSizes) names.push_back(name_of(size));
  require_fit("processes", names, patterns);
  TwoProcesses both(steps_of);
  const PairedOptions options{.pairs = 101, .seconds = std::min(0.3, seconds), .budget = seconds};
  for (size_t i = 0; i < std::size(kSizes); ++i) {
    if (!fits(names[i], patterns)) continue;
    const auto measure = [&](const char* peer_name, const std::function<void()>& peer) {
      report(make_row(names[i], time_in_pairs([&] { both.run(i, 1); }, peer, options), peer_name, "ms", 1e3));
    };
    const auto fsdp2 = PythonPeer::start(fmt::format("fsdp2_llama.py {} {}", kSizes[i].rows, kSizes[i].length));
    if (fsdp2) measure("fsdp2", [&] { fsdp2->run(1); });
    measure("threads", threaded_step(both, kSizes[i]));
  }
}

}  // namespace lockstep::bench
