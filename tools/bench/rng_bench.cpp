#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "core/elementary/instruction_set.h"
#include "rng/fill.h"
#include "rng/permutation.h"

/// Bulk draws for every instruction set, dtype and distribution beside LibTorch's, one thread.
/// Run with --benchmark_filter=... ; for a verdict on ratios use `lockstep bench rng`, which measures in pairs.
namespace lockstep {
namespace {

constexpr int64_t kElements = 1 << 20;

void count_elements(benchmark::State& state) { state.SetItemsProcessed(state.iterations() * kElements); }

void fill_all(benchmark::State& state, rng::ScalarKind kind, const rng::Distribution& distribution,
              InstructionSet set) {
  std::vector<uint64_t> out(kElements);
  uint64_t stream = 0;
  for (auto _ : state) {
    rng::fill(out.data(), kind, distribution, rng::Key{1}, ++stream, rng::Subarray::whole({kElements}), set);
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

void torch_fill(benchmark::State& state, at::ScalarType type, const std::function<void(at::Tensor&)>& draw) {
  auto out = at::empty({kElements}, type);
  for (auto _ : state) {
    draw(out);
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

/// Half of the columns of a row-major matrix: what a column-sharded weight draws.
void fill_columns(benchmark::State& state) {
  constexpr int64_t kRows = 1024, kColumns = 2 * kElements / kRows;
  std::vector<float> out(kElements);
  const auto subarray = rng::Subarray::of({kRows, kColumns}, {{0, kColumns / 2 + 1}, {kRows, kColumns / 2 - 1}});
  for (auto _ : state) {
    rng::fill(out.data(), rng::ScalarKind::kFloat32, rng::normal(), rng::Key{1}, 2, subarray);
    benchmark::ClobberMemory();
  }
  count_elements(state);
}

void permute(benchmark::State& state) {
  const rng::Permutation permutation(rng::Key{1}, 2, static_cast<uint64_t>(state.range(0)));
  uint64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(permutation(i++ % permutation.size()));
}

struct Subject {
  std::string name;
  rng::ScalarKind kind;
  rng::Distribution distribution;
};

void register_ours() {
  using rng::ScalarKind;
  const std::vector<Subject> subjects = {
      {"uniform/float32", ScalarKind::kFloat32, rng::uniform()},
      {"uniform/float64", ScalarKind::kFloat64, rng::uniform()},
      {"normal/float32", ScalarKind::kFloat32, rng::normal()},
      {"normal/float64", ScalarKind::kFloat64, rng::normal()},
      {"normal/bfloat16", ScalarKind::kBFloat16, rng::normal()},
      {"normal/float16", ScalarKind::kFloat16, rng::normal()},
      {"truncated_normal/float32", ScalarKind::kFloat32, rng::truncated_normal(0, 1, -2, 2)},
      {"dropout_mask/float32", ScalarKind::kFloat32, rng::dropout_mask(0.9)},
      {"bernoulli/bool", ScalarKind::kBool, rng::bernoulli(0.9)},
      {"integers/int64", ScalarKind::kInt64, rng::integers(0, 50257)},
  };
  for (const auto& s : subjects) {
    for (const auto set : available_instruction_sets()) {
      const auto name = "ours/" + s.name + "/" + std::string(name_of(set));
      benchmark::RegisterBenchmark(name.c_str(), fill_all, s.kind, s.distribution, set);
    }
  }
  benchmark::RegisterBenchmark("ours/normal/float32/columns", fill_columns);
  benchmark::RegisterBenchmark("ours/permutation", permute)->Arg(100)->Arg(1'000'000)->Arg(int64_t{1} << 40);
}

void register_peers() {
  const std::vector<std::pair<const char*, std::function<void(at::Tensor&)>>> draws = {
      {"uniform", [](at::Tensor& out) { at::rand_out(out, {kElements}); }},
      {"normal", [](at::Tensor& out) { at::randn_out(out, {kElements}); }},
      {"bernoulli", [](at::Tensor& out) { out.bernoulli_(0.9); }},
  };
  for (const auto& [name, draw] : draws) {
    benchmark::RegisterBenchmark((std::string("libtorch/") + name + "/float32").c_str(), torch_fill, at::kFloat, draw);
    benchmark::RegisterBenchmark((std::string("libtorch/") + name + "/float64").c_str(), torch_fill, at::kDouble, draw);
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  at::set_num_threads(1);
  lockstep::register_ours();
  lockstep::register_peers();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
