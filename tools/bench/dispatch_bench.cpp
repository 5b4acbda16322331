#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include <functional>

#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"

/// Overhead of ops on the mesh: 8-element tensors, cached plans, beside the plain op. For a verdict on ratios use
/// `lockstep bench dispatch`, which measures in pairs.
namespace lockstep {
namespace {

using Op = std::function<at::Tensor(const at::Tensor&)>;

void on_mesh(benchmark::State& state, const Op& op) {
  const auto ranks = static_cast<int>(state.range(0));
  World world({.rank_count = ranks});
  const auto x = distribute(at::ones({2, 4}), Layout::replicated(world.mesh({{"tp", ranks}})));
  for (auto _ : state) benchmark::DoNotOptimize(op(x));
}

void plain(benchmark::State& state, const Op& op) {
  const auto x = at::ones({2, 4});
  for (auto _ : state) benchmark::DoNotOptimize(op(x));
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  const std::pair<const char*, lockstep::Op> ops[] = {
      {"add", [](const at::Tensor& x) { return at::add(x, x); }},
      {"view", [](const at::Tensor& x) { return x.view({8}); }},
      {"transpose", [](const at::Tensor& x) { return x.t(); }},
      {"sum", [](const at::Tensor& x) { return at::sum(x); }},
  };
  for (const auto& [name, op] : ops) {
    benchmark::RegisterBenchmark((std::string("mesh/") + name).c_str(), lockstep::on_mesh, op)->Arg(1)->Arg(4)->Arg(16);
    benchmark::RegisterBenchmark((std::string("libtorch/") + name).c_str(), lockstep::plain, op);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
