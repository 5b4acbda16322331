#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include <cstring>

#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transport/simulated.h"

/// Collectives on simulated ranks, handed over directly and as messages, beside a memcpy of the bytes that a rank sends
/// times the ranks. One thread; 4 ranks; sizes are those of the whole tensor.
namespace lockstep {
namespace {

constexpr int kRanks = 4;

void move(benchmark::State& state, const char* from, const char* to, bool messages) {
  World::Options options{.rank_count = kRanks};
  if (messages) options.transport = std::make_shared<SimulatedTransport>(1);
  World world(std::move(options));
  const auto& mesh = world.mesh("tp=4");
  const auto tensor = distribute(at::zeros({state.range(0), 256}), Layout::parse(mesh, from));
  const auto target = Layout::parse(mesh, to);
  world.traffic().clear();
  for (auto _ : state) benchmark::DoNotOptimize(redistribute_values(tensor, target, "bench"));
  state.SetBytesProcessed(static_cast<int64_t>(world.traffic().bytes() * kRanks));
}

/// What an all-gather of as many rows sends, at the speed of memory.
void copy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0)) * 256 * sizeof(float) * (kRanks - 1);
  std::vector<char> source(bytes), target(bytes);
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

void register_moves(const std::string& way, bool messages) {
  const std::tuple<const char*, const char*, const char*> moves[] = {{"all_gather", "[tp=S(0)]", "[tp=R]"},
                                                                     {"all_reduce", "[tp=P(sum)]", "[tp=R]"},
                                                                     {"reduce_scatter", "[tp=P(sum)]", "[tp=S(0)]"},
                                                                     {"all_to_all", "[tp=S(0)]", "[tp=S(1)]"}};
  for (const auto& [name, from, to] : moves)
    benchmark::RegisterBenchmark((way + "/" + name).c_str(), move, from, to, messages)->Arg(16)->Arg(4096);
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::register_moves("direct", false);
  lockstep::register_moves("messages", true);
  benchmark::RegisterBenchmark("peer/memcpy", lockstep::copy)->Arg(16)->Arg(4096);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
