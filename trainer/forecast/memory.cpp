#include "trainer/forecast/memory.h"

#include <algorithm>

namespace lockstep::trainer::forecast {
namespace {

constexpr double kFloat = 4, kBFloat16 = 2;

/// Elements of a token and a layer that backward needs: what linear maps, norms and gates were given, what attention
/// gave.
double kept_elements(const DenseModel& m, Recompute recompute) {
  const auto width = static_cast<double>(m.width), hidden = static_cast<double>(m.hidden);
  const auto queries = static_cast<double>(m.heads * m.head_size);
  const auto keys = static_cast<double>(m.key_value_heads * m.head_size);
  const double qkv = queries + 2 * keys;
  switch (recompute) {
    case Recompute::kNone:  // input, norm, projections, rotated ones, attention, sum, norm, gates, their product
      return width * 4 + qkv + queries + keys + queries + 3 * hidden;
    case Recompute::kLinear:  // input, projections, attention, its map, gates, their map
      return width * 3 + qkv + queries + 2 * hidden;
    case Recompute::kOp:  // input, projections, attention, gates
      return width + qkv + queries + 2 * hidden;
    default:
      return width;
  }
}

/// Layers times microbatches whose activations the first rank of a pipeline holds (1F1B: D. Narayanan et al.,
/// "Efficient large-scale language model training on GPU clusters using Megatron-LM", 2021, sections 2.2 and 3).
double held_layers(const Workload& workload, const Settings& s) {
  const auto stages = static_cast<double>(s.mesh.pp), per_rank = static_cast<double>(s.stages_per_rank);
  const auto layers = static_cast<double>(std::min(largest_stage(workload, s), workload.model.layers));
  const double most = s.stages_per_rank > 1 ? stages + (stages - 1) / per_rank : stages;
  return layers * std::min(static_cast<double>(microbatches(workload, s)), most);
}

/// The first or the last stage has a table beside its other layers.
double parameters_of_stage(const Workload& workload, const Settings& s) {
  const auto& m = workload.model;
  if (s.mesh.pp == 1) return m.parameters();
  const auto layers = static_cast<double>(largest_stage(workload, s));
  return std::max(layers * m.layer_parameters(), (layers - 1) * m.layer_parameters() + m.table_parameters());
}

/// Of a layer, in bytes: with cp keys and values of whole sequences stay until backward.
double gathered_keys(const Workload& workload, const Settings& s) {
  if (s.mesh.cp == 1) return 0;
  const auto of_token = static_cast<double>(2 * workload.model.key_value_heads * workload.model.head_size);
  return kBFloat16 * of_token * static_cast<double>(s.local_batch * workload.seq_len) / static_cast<double>(s.mesh.tp);
}

}  // namespace

MemoryForecast memory_of(const Workload& workload, const Settings& s) {
  const auto& m = workload.model;
  const auto tp = static_cast<double>(s.mesh.tp);
  const auto sharding = static_cast<double>(s.sharding());
  const double of_stage = parameters_of_stage(workload, s) / tp, tokens = tokens_of(workload, s) / tp;
  const bool is_cut = sharding > 1, is_pipeline = s.mesh.pp > 1;
  MemoryForecast memory;
  memory.state = 3 * kFloat * of_stage / sharding;
  memory.gradients = kFloat * of_stage / sharding;
  // With pp all of the stage, gradients as well; otherwise two layers, one of them with its gradients, and the head.
  const double at_once = std::min(of_stage, (2 * m.layer_parameters() + m.table_parameters()) / tp);
  const double with_gradients = std::min(of_stage, m.layer_parameters() / tp);
  if (is_pipeline)
    memory.gathered = of_stage * (kBFloat16 + (is_cut ? kFloat : 0));
  else
    memory.gathered = at_once * kBFloat16 + (is_cut ? with_gradients * kFloat : 0);
  const bool keeps_all = s.recompute == Recompute::kNone;
  const double whole = kBFloat16 * kept_elements(m, Recompute::kNone) * tokens + gathered_keys(workload, s);
  memory.activations = kBFloat16 * kept_elements(m, s.recompute) * tokens * held_layers(workload, s);
  memory.activations += keeps_all ? gathered_keys(workload, s) * held_layers(workload, s) : whole;
  memory.logits = 2 * kBFloat16 * static_cast<double>(m.vocabulary) * tokens;
  const bool accumulates = microbatches(workload, s) > 1;
  const double before = memory.state + (accumulates ? memory.gradients : 0) + memory.activations + memory.logits;
  memory.peak = memory.gathered + std::max(before, memory.state + memory.gradients);
  return memory;
}

}  // namespace lockstep::trainer::forecast
