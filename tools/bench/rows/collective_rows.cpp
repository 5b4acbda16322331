#include "tools/bench/rows/collective_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <filesystem>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transport/process_group/gloo_streams.h"
#include "runtime/transport/streams/stream_transport.h"
#include "tools/bench/peers/contender.h"
#include "tools/bench/peers/plain_collectives.h"

namespace lockstep::bench {
namespace {

struct Peer {
  const char* name;
  std::function<void()> run;
};

/// A row for each peer, as both processes see it.
struct Case {
  std::string name;
  int batch;  ///< so many between two looks at the clock
  std::function<void()> ours;
  std::vector<Peer> peers;
};

constexpr struct Kind {
  CollectiveKind kind;
  const char* name;
  const char* from;
  const char* to;
  int halves_sent;  ///< how many times half the tensor each of two ranks sends
} kKinds[] = {{CollectiveKind::kAllGather, "allgather", "[tp=S(0)]", "[tp=R]", 1},
              {CollectiveKind::kReduceScatter, "reducescatter", "[tp=P(sum)]", "[tp=S(0)]", 1},
              {CollectiveKind::kAllReduce, "allreduce", "[tp=P(sum)]", "[tp=R]", 2}};

constexpr struct Size {
  const char* name;
  int64_t floats;
  int batch;
} kSizes[] = {{"1MiB", 1 << 18, 10}, {"16MiB", 1 << 22, 1}};

constexpr int kSmallBatch = 200;

/// A rank of a World over one stream.
struct Rank {
  Rank(int rank, std::unique_ptr<Stream> stream) {
    std::vector<std::unique_ptr<Stream>> streams(2);
    streams[static_cast<size_t>(1 - rank)] = std::move(stream);
    auto transport = std::make_shared<StreamTransport>(rank, std::move(streams), std::chrono::seconds{60});
    world = std::make_unique<World>(World::Options{.rank_count = 2, .local_ranks = {rank}, .transport = transport});
  }
  std::function<void()> redistribution(const Kind& kind, int64_t floats) const {
    const auto& mesh = world->mesh("tp=2");
    const auto tensor = distribute(at::ones({floats}), Layout::parse(mesh, kind.from));
    return [tensor, target = Layout::parse(mesh, kind.to)] { redistribute_values(tensor, target, "bench"); };
  }
  std::unique_ptr<World> world;
};

/// The store is a file: these two processes have no other place to meet.
std::unique_ptr<Stream> stream_over_gloo(int rank) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("lockstep-bench-{}", rank == 0 ? ::getpid() : ::getppid());
  const Membership me{rank, 2, "two processes of a bench", std::chrono::seconds{20}, Carrier::kGloo};
  auto streams = gloo_streams(me, c10::make_intrusive<c10d::FileStore>(path.string(), 2), "127.0.0.1");
  if (rank == 0) std::filesystem::remove(path);
  return std::move(streams[static_cast<size_t>(1 - rank)]);
}

std::vector<Case> cases_of(Ends ends) {
  const auto rank = ends.rank;
  const auto memory = std::make_shared<Rank>(rank, std::move(ends.memory)),
             tcp = std::make_shared<Rank>(rank, std::move(ends.tcp)),
             gloo = std::make_shared<Rank>(rank, stream_over_gloo(rank));
  const auto plain = std::make_shared<FileDescriptor>(std::move(ends.plain)),
             unpaced = std::make_shared<FileDescriptor>(std::move(ends.unpaced));
  const auto& sum = kKinds[2];
  std::vector<Case> cases{
      {"allreduce_4B_shm_2", kSmallBatch, memory->redistribution(sum, 1), {{"sockets", plain_exchange(plain, 4)}}},
      {"allreduce_4B_tcp_2", kSmallBatch, tcp->redistribution(sum, 1), {{"sockets", plain_exchange(plain, 4)}}},
      {"allreduce_4B_gloo_2", kSmallBatch, gloo->redistribution(sum, 1), {{"sockets", plain_exchange(plain, 4)}}}};
  for (const auto& size : kSizes)
    for (const auto& kind : kKinds) {
      const int64_t bytes = 4 * size.floats;
      const auto name = [&](const char* way) { return fmt::format("{}_{}_{}_2", kind.name, size.name, way); };
      cases.push_back(
          {name("shm"),
           size.batch,
           memory->redistribution(kind, size.floats),
           {{"memcpy", plain_copy(ends, bytes)}, {"by hand", by_hand_in_memory(ends, kind.kind, size.floats)}}});
      cases.push_back({name("tcp"),
                       size.batch,
                       tcp->redistribution(kind, size.floats),
                       {{"sockets", plain_exchange(plain, bytes / 2 * kind.halves_sent)},
                        {"by hand", by_hand_over(unpaced, kind.kind, size.floats)}}});
      cases.push_back({name("gloo"),
                       size.batch,
                       gloo->redistribution(kind, size.floats),
                       {{"sockets", plain_exchange(plain, bytes / 2 * kind.halves_sent)}}});
    }
  for (auto& each : cases) {  // the worlds live as long as their tensors
    each.ours = [memory, tcp, gloo, ours = std::move(each.ours)] { ours(); };
  }
  return cases;
}

}  // namespace

void measure_collectives(const std::string& patterns, double seconds,
                         const std::function<void(const BenchRow&)>& report) {
  at::set_num_threads(1);
  std::vector<Case> cases;
  std::vector<std::string> names;
  TwoProcesses both([&](Ends ends) {
    cases = cases_of(std::move(ends));
    for (const auto& each : cases) names.push_back(each.name);
    std::erase_if(cases, [&](const Case& each) { return !fits(each.name, patterns); });
    TwoProcesses::Works works;
    for (const auto& each : cases) {
      works.push_back(each.ours);
      for (const auto& peer : each.peers) works.push_back(peer.run);
    }
    return works;
  });
  require_fit("collectives", names, patterns);
  const PairedOptions options{.pairs = 1001, .seconds = std::min(0.005, seconds), .budget = seconds};
  const auto gloo = Contender::python("gloo_all_reduce.py", "");
  size_t work = 0;  // ours, and the peers behind it
  for (const auto& each : cases) {
    const auto measure = [&](const std::string& peer_name, const std::function<void()>& peer) {
      const auto timing = time_in_pairs([&] { both.run(work, each.batch); }, peer, options);
      report(make_row(each.name, timing, peer_name, "us", 1e6 / each.batch));
    };
    if (gloo && each.batch == kSmallBatch) measure("gloo", [&] { gloo->run(kSmallBatch); });
    for (size_t p = 0; p < each.peers.size(); ++p)
      measure(each.peers[p].name, [&] { both.run(work + 1 + p, each.batch); });
    work += 1 + each.peers.size();
  }
}

}  // namespace lockstep::bench
