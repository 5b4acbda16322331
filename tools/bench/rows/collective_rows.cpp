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

/// Both processes' ranks, by what carries their bytes, and the sockets beside them.
struct Ways {
  explicit Ways(Ends& ends)
      : memory(ends.rank, std::move(ends.memory)),
        tcp(ends.rank, std::move(ends.tcp)),
        gloo(ends.rank, stream_over_gloo(ends.rank)),
        plain(std::make_shared<FileDescriptor>(std::move(ends.plain))),
        unpaced(std::make_shared<FileDescriptor>(std::move(ends.unpaced))) {}
  Rank memory, tcp, gloo;
  std::shared_ptr<FileDescriptor> plain, unpaced;

  Peer sockets(int64_t bytes) const { return {"sockets", plain_exchange(plain, bytes)}; }
};

void add_small(const Ways& ways, std::vector<Case>& cases) {
  const auto& sum = kKinds[2];
  const std::pair<const char*, const Rank*> all[] = {{"shm", &ways.memory}, {"tcp", &ways.tcp}, {"gloo", &ways.gloo}};
  for (const auto& [way, rank] : all)
    cases.push_back(
        {fmt::format("allreduce_4B_{}_2", way), kSmallBatch, rank->redistribution(sum, 1), {ways.sockets(4)}});
}

void add_sized(const Ways& ways, const Ends& ends, const Size& size, const Kind& kind, std::vector<Case>& cases) {
  const int64_t bytes = 4 * size.floats, sent = bytes / 2 * kind.halves_sent;
  const auto add = [&](const char* way, const Rank& rank, std::vector<Peer> peers) {
    cases.push_back({fmt::format("{}_{}_{}_2", kind.name, size.name, way), size.batch,
                     rank.redistribution(kind, size.floats), std::move(peers)});
  };
  add("shm", ways.memory,
      {{"memcpy", plain_copy(ends, bytes)}, {"by hand", by_hand_in_memory(ends, kind.kind, size.floats)}});
  add("tcp", ways.tcp, {ways.sockets(sent), {"by hand", by_hand_over(ways.unpaced, kind.kind, size.floats)}});
  add("gloo", ways.gloo, {ways.sockets(sent)});
}

std::vector<Case> cases_of(Ends ends) {
  const auto ways = std::make_shared<Ways>(ends);
  std::vector<Case> cases;
  add_small(*ways, cases);
  for (const auto& size : kSizes)
    for (const auto& kind : kKinds) add_sized(*ways, ends, size, kind, cases);
  for (auto& each : cases)  // the worlds live as long as their tensors
    each.ours = [ways, ours = std::move(each.ours)] { ours(); };
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
