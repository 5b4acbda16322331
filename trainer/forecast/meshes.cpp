#include "trainer/forecast/meshes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "core/error.h"
#include "trainer/job/expert_degrees.h"

namespace lockstep::trainer::forecast {
namespace {

constexpr double kGibibyte = 1 << 30;

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> all;
  for (int64_t d = 1; d <= number / d; ++d)
    if (number % d == 0) {
      all.push_back(d);
      if (d != number / d) all.push_back(number / d);
    }
  std::ranges::sort(all);
  return all;
}

/// In how many ways five degrees divide `ranks`: of each prime of power e, (e + 4 over 4).
int64_t mesh_count(int64_t ranks) {
  int64_t count = 1;
  for (int64_t prime = 2; ranks > 1; ++prime) {
    if (prime > ranks / prime) prime = ranks;
    int64_t power = 0;
    for (; ranks % prime == 0; ranks /= prime) ++power;
    count *= (power + 1) * (power + 2) * (power + 3) * (power + 4) / 24;
  }
  return count;
}

std::string refusal_of_experts(const ModelSizes& m, const MeshDegrees& mesh) {
  if (mesh.ep == 1 && mesh.etp == 1) return {};
  if (!m.has_experts()) return "ep and etp are of experts, which the model has none of";
  if (!can_divide_experts(mesh)) return "ep and etp are none that the other axes offer (docs/experts.md)";
  return m.experts.count % mesh.ep == 0 ? "" : fmt::format("ep does not divide {} experts", m.experts.count);
}

/// Why the mesh cannot be, whatever else is chosen; empty: it can. In words that fit all meshes that cannot for it.
std::string refusal(const Workload& w, const MeshDegrees& mesh, const Hardware& hardware) {
  const auto& m = w.model;
  if (mesh.tp > hardware.ranks_per_host)
    return fmt::format("tp is more than the {} ranks of a host", hardware.ranks_per_host);
  if (const auto heads = m.attention.key_value_heads; heads % mesh.tp != 0)
    return fmt::format("tp does not divide {} key-value heads", heads);
  if (mesh.pp > m.layers + 2) return fmt::format("pp is more than {} layers, embedding and head", m.layers);
  if (w.seq_len % ((mesh.cp > 1 ? 2 : 1) * mesh.cp * mesh.tp) != 0)
    return fmt::format("cp x tp does not cut {} tokens, with cp their halves, evenly", w.seq_len);
  if (w.global_batch % mesh.data_parallel() != 0)
    return fmt::format("dp_replicate x dp_shard does not divide {} sequences", w.global_batch);
  return refusal_of_experts(m, mesh);
}

/// All that ep and etp may be on the mesh: those whose ranks have as many experts each.
std::vector<MeshDegrees> divisions_of_experts(const ModelSizes& model, MeshDegrees mesh) {
  std::vector<MeshDegrees> all;
  if (!model.has_experts()) return {mesh};
  for (const int64_t etp : mesh.tp > 1 ? std::vector{int64_t{1}, mesh.tp} : std::vector{int64_t{1}}) {
    mesh.etp = etp;
    for (const auto ep : expert_degrees(mesh)) {
      mesh.ep = ep;
      const bool is_there = ep == 1 && etp > 1;  // tp cuts experts without ep in any case
      if (!is_there && refusal_of_experts(model, mesh).empty()) all.push_back(mesh);
    }
    mesh.ep = 1;
  }
  return all;
}

std::vector<int64_t> local_batches(const Workload& w, const MeshDegrees& mesh, const Choice& choice) {
  const int64_t sequences = w.global_batch / mesh.data_parallel();
  if (choice.local_batch)
    return sequences % *choice.local_batch == 0 ? std::vector{*choice.local_batch} : std::vector<int64_t>{};
  std::vector<int64_t> all;
  for (const auto batch : divisors(sequences))
    if (batch <= 64) all.push_back(batch);
  return all;
}

/// One stage a rank, and as many as have whole layers where microbatches go around evenly.
std::vector<int64_t> stages_per_rank(const Workload& w, const MeshDegrees& mesh, int64_t microbatches,
                                     const Choice& choice) {
  std::vector<int64_t> all{1};
  const int64_t units = w.model.layers + 2;
  if (mesh.pp > 1 && microbatches % mesh.pp == 0)
    for (int64_t each = 2; each * mesh.pp <= units; ++each)
      if (choice.stages_per_rank || units % (each * mesh.pp) == 0) all.push_back(each);
  if (choice.stages_per_rank) std::erase_if(all, [&](int64_t each) { return each != *choice.stages_per_rank; });
  return all;
}

MeshForecast with(const Workload& w, const Settings& settings, const Hardware& hardware) {
  MeshForecast result{settings, memory_of(w, settings), time_of(w, settings, hardware)};
  result.mfu = utilization(w, settings, hardware, result.time.step());
  result.fits = result.memory.peak <= kUsableMemory * hardware.memory_bytes;
  return result;
}

/// Of two the one to take: one that fits, then the faster one, or where none fits the smaller one.
bool is_better(const MeshForecast& one, const MeshForecast& other) {
  if (one.fits != other.fits) return one.fits;
  return one.fits ? one.time.step() < other.time.step() : one.memory.peak < other.memory.peak;
}

std::optional<MeshForecast> best_of(const Workload& w, const MeshDegrees& mesh, const Hardware& hardware,
                                    const Choice& choice) {
  std::optional<MeshForecast> best;
  for (const auto local_batch : local_batches(w, mesh, choice))
    for (const auto stages : stages_per_rank(w, mesh, microbatches(w, {mesh, local_batch}), choice))
      for (const auto recompute : kAllRecomputes) {
        if (choice.recompute && recompute != *choice.recompute) continue;
        const auto found = with(w, {mesh, local_batch, recompute, stages, choice.element_bytes}, hardware);
        if (!best || is_better(found, *best)) best = found;
      }
  return best;
}

/// The mesh with the degrees of experts that are best.
MeshForecast best_division(const Workload& workload, const MeshDegrees& mesh, const Hardware& hardware,
                           const Choice& choice) {
  std::optional<MeshForecast> best;
  if (!refusal(workload, mesh, hardware).empty()) return forecast_of(workload, mesh, hardware, choice);
  for (const auto& divided : divisions_of_experts(workload.model, mesh)) {
    auto found = forecast_of(workload, divided, hardware, choice);
    if (!best || is_better(found, *best)) best = std::move(found);
  }
  return *std::move(best);
}

}  // namespace

MeshForecast forecast_of(const Workload& workload, const MeshDegrees& mesh, const Hardware& hardware,
                         const Choice& choice) {
  MeshForecast none{.settings = {mesh}};
  none.why = refusal(workload, mesh, hardware);
  if (!none.why.empty()) return none;
  auto best = best_of(workload, mesh, hardware, choice);
  if (!best) {
    none.why = fmt::format("{} sequences of a rank make no microbatches of {} that {} stages a rank can take in turns",
                           workload.global_batch / mesh.data_parallel(), choice.local_batch.value_or(1),
                           choice.stages_per_rank.value_or(1));
    return none;
  }
  if (!best->fits)
    best->why = fmt::format("{:.1f} GiB, of {:.1f} usable ones", best->memory.peak / kGibibyte,
                            kUsableMemory * hardware.memory_bytes / kGibibyte);
  return *best;
}

std::vector<MeshForecast> all_meshes(const Workload& workload, int64_t ranks, const Hardware& hardware,
                                     const Choice& choice) {
  constexpr int64_t kMostMeshes = 200'000;
  if (const auto count = mesh_count(ranks); count > kMostMeshes)
    fail<BadInput>("{} ranks make {} meshes, {} at most are looked at; choose a number with fewer divisors.", ranks,
                   count, kMostMeshes);
  std::vector<MeshForecast> all;
  for (const auto pp : divisors(ranks))
    for (const auto tp : divisors(ranks / pp))
      for (const auto cp : divisors(ranks / pp / tp))
        for (const auto shard : divisors(ranks / pp / tp / cp))
          all.push_back(best_division(
              workload, {.pp = pp, .dp_replicate = ranks / pp / tp / cp / shard, .dp_shard = shard, .cp = cp, .tp = tp},
              hardware, choice));
  std::ranges::stable_sort(all, [](const MeshForecast& a, const MeshForecast& b) {
    const auto place = [](const MeshForecast& f) {
      return std::tuple(!f.fits, f.fits ? f.time.step() : f.memory.peak);
    };
    return place(a) < place(b);
  });
  return all;
}

}  // namespace lockstep::trainer::forecast
