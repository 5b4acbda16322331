#include "tools/bench/collective_rows.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstring>

#include "core/error.h"
#include "runtime/redistribute.h"
#include "runtime/sharded_tensor.h"
#include "runtime/transport/stream_transport.h"
#include "runtime/world.h"
#include "tools/bench/python_peer.h"
#include "tools/bench/two_processes.h"

namespace lockstep::bench {
namespace {

/// A row, as both processes see it.
struct Case {
  std::string name, peer_name;
  int batch;  ///< so many between two looks at the clock
  std::function<void()> ours, peer;
};

constexpr struct Kind {
  const char* name;
  const char* from;
  const char* to;
  int halves_sent;  ///< how many times half the tensor each of two ranks sends
} kKinds[] = {{"allgather", "[tp=S(0)]", "[tp=R]", 1},
              {"reducescatter", "[tp=P(sum)]", "[tp=S(0)]", 1},
              {"allreduce", "[tp=P(sum)]", "[tp=R]", 2}};

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

/// One half is ours, the other the other process's.
std::function<void()> plain_copy(const Ends& ends, int64_t bytes) {
  const auto half = static_cast<size_t>(bytes / 2);
  return [to = at::zeros({bytes}, at::kByte), mine = ends.mine, theirs = ends.theirs, half] {
    auto* first = to.mutable_data_ptr<uint8_t>();
    std::memcpy(first, mine.data(), half);
    std::memcpy(first + half, theirs.data(), half);
  };
}

/// Both sides send and receive at once, as a collective does.
void exchange_plainly(const FileDescriptor& socket, at::Tensor& out, at::Tensor& in, size_t bytes) {
  size_t sent = 0, received = 0;
  while (sent < bytes || received < bytes) {
    const auto went = ::send(socket.get(), out.data_ptr<uint8_t>() + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    const auto came = ::recv(socket.get(), in.data_ptr<uint8_t>() + received, bytes - received, MSG_DONTWAIT);
    if (went > 0) sent += static_cast<size_t>(went);
    if (came > 0) received += static_cast<size_t>(came);
    if (went > 0 || came > 0) continue;
    pollfd event{socket.get(), static_cast<short>(sent < bytes ? POLLIN | POLLOUT : POLLIN), 0};
    ::poll(&event, 1, 1000);
    LOCKSTEP_CHECK(!(event.revents & POLLHUP), "the other process is gone");
  }
}

std::function<void()> plain_exchange(const std::shared_ptr<FileDescriptor>& socket, int64_t bytes) {
  return [socket, bytes, out = at::zeros({bytes}, at::kByte), in = at::zeros({bytes}, at::kByte)]() mutable {
    exchange_plainly(*socket, out, in, static_cast<size_t>(bytes));
  };
}

std::vector<Case> cases_of(Ends ends) {
  const auto rank = ends.rank;
  const auto memory = std::make_shared<Rank>(rank, std::move(ends.memory)),
             tcp = std::make_shared<Rank>(rank, std::move(ends.tcp));
  const auto plain = std::make_shared<FileDescriptor>(std::move(ends.plain));
  const auto& sum = kKinds[2];
  std::vector<Case> cases{
      {"allreduce_4B_shm_2", "sockets", kSmallBatch, memory->redistribution(sum, 1), plain_exchange(plain, 4)},
      {"allreduce_4B_tcp_2", "sockets", kSmallBatch, tcp->redistribution(sum, 1), plain_exchange(plain, 4)}};
  for (const auto& size : kSizes)
    for (const auto& kind : kKinds) {
      const int64_t bytes = 4 * size.floats;
      const auto name = [&](const char* way) { return fmt::format("{}_{}_{}_2", kind.name, size.name, way); };
      cases.push_back(
          {name("shm"), "memcpy", size.batch, memory->redistribution(kind, size.floats), plain_copy(ends, bytes)});
      cases.push_back({name("tcp"), "sockets", size.batch, tcp->redistribution(kind, size.floats),
                       plain_exchange(plain, bytes / 2 * kind.halves_sent)});
    }
  for (auto& each : cases) {  // the worlds live as long as their tensors
    each.ours = [memory, tcp, ours = std::move(each.ours)] { ours(); };
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
      works.push_back(each.peer);
    }
    return works;
  });
  require_fit("collectives", names, patterns);
  const PairedOptions options{.pairs = 1001, .seconds = std::min(0.005, seconds), .budget = seconds};
  const auto gloo = PythonPeer::start("gloo_all_reduce.py");
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto& each = cases[i];
    const auto measure = [&](const std::string& peer_name, const std::function<void()>& peer) {
      const auto timing = time_in_pairs([&] { both.run(2 * i, each.batch); }, peer, options);
      report(make_row(each.name, timing, peer_name, "us", 1e6 / each.batch));
    };
    if (gloo && each.batch == kSmallBatch) measure("gloo", [&] { gloo->run(kSmallBatch); });
    measure(each.peer_name, [&] { both.run(2 * i + 1, each.batch); });
  }
}

}  // namespace lockstep::bench
