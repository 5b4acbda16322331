#include "trainer/forecast/memory.h"

#include <algorithm>

namespace lockstep::trainer::forecast {
namespace {

constexpr double kFloat = 4;

/// Elements of a token and a layer that backward needs: what linear maps, norms and gates were given, what attention
/// gave; `rows`: of what goes to experts and comes back from them.
double kept_elements(const ModelSizes& m, const LayerSizes& layer, double rows, Recompute recompute) {
  const auto width = static_cast<double>(m.width), projected = static_cast<double>(m.attention.projected);
  const auto scored = static_cast<double>(m.attention.scored), given = static_cast<double>(m.attention.given);
  switch (recompute) {
    case Recompute::kNone:  // input, norm, projections, rotated ones, attention, sum, norm, gates, their product
      return width * (4 + 2 * rows) + projected + scored + given + 3 * layer.hidden;
    case Recompute::kLinear:  // input, projections, attention, its map, gates, their map
      return width * (3 + rows) + projected + given + 2 * layer.hidden;
    case Recompute::kOp:  // input, projections, attention, gates
      return width + projected + given + 2 * layer.hidden;
    default:
      return width;
  }
}

/// The memory of one workload and settings.
class Forecast {
 public:
  Forecast(const Workload& workload, const Settings& settings)
      : m_(workload.model),
        w_(workload),
        s_(settings),
        tp_(static_cast<double>(settings.mesh.tp)),
        element_(static_cast<double>(settings.element_bytes)) {}

  MemoryForecast memory() const {
    MemoryForecast memory;
    const auto ranks = tp_ * static_cast<double>(s_.sharding());
    memory.state = 3 * kFloat * parameters_of_stage() / ranks;
    memory.gradients = kFloat * parameters_of_stage() / ranks;
    memory.gathered = s_.mesh.pp > 1 ? gathered_stage() : gathered_layers();
    memory.activations = activations();
    memory.logits = 2 * element_ * static_cast<double>(m_.vocabulary) * tokens();
    const bool accumulates = microbatches(w_, s_) > 1;
    const double before = memory.state + (accumulates ? memory.gradients : 0) + memory.activations + memory.logits;
    memory.peak = memory.gathered + std::max(before, memory.state + memory.gradients);
    return memory;
  }

 private:
  double tokens() const { return tokens_of(w_, s_) / tp_; }

  /// Layers of the fullest stage, and beside them a table.
  struct Stage {
    OfLayers layers;
    double table = 0;
  };

  /// The first or the last stage has a table beside its other layers.
  Stage fullest_stage() const {
    if (s_.mesh.pp == 1) return {layers_of(m_), m_.outer_parameters()};
    const auto layers = std::min(largest_stage(w_, s_), m_.layers);
    const Stage plain{fullest(m_, layers, s_.stages_per_rank)};
    const Stage end{fullest(m_, layers - 1, s_.stages_per_rank), m_.table_parameters()};
    return of(plain.layers) >= of(end.layers) + end.table ? plain : end;
  }
  double of(const OfLayers& layers) const {
    return over_layers(m_, layers, [](const LayerSizes& layer) { return layer.parameters(); });
  }
  double parameters_of_stage() const { return of(fullest_stage().layers) + fullest_stage().table; }

  /// Where ranks have shares, gradients are whole before they are reduced.
  double unreduced_gradients(const RankParameters& parameters) const {
    return kFloat *
           ((s_.sharding() > 1 ? parameters.everywhere : 0) + (s_.expert_sharding() > 1 ? parameters.routed : 0));
  }

  /// With pp all of the stage, gradients as well.
  double gathered_stage() const {
    const auto stage = fullest_stage();
    auto whole = rank_parameters(m_, stage.layers, s_);
    whole.everywhere += stage.table / tp_;
    return element_ * whole.all() + unreduced_gradients(whole);
  }

  /// Otherwise two layers, one of them with its gradients, and the head.
  double gathered_layers() const {
    const auto layer = rank_parameters(largest_layer(m_), s_);
    auto whole = rank_parameters(m_, layers_of(m_), s_);
    whole.everywhere += m_.outer_parameters() / tp_;
    const double at_once = 2 * layer.all() + m_.table_parameters() / tp_;
    return element_ * std::min(whole.all(), at_once) + unreduced_gradients(layer);
  }

  /// Of a layer, in bytes: with cp keys and values of whole sequences stay until backward.
  double gathered_keys() const {
    if (s_.mesh.cp == 1) return 0;
    const auto of_token = static_cast<double>(m_.attention.keys_and_values);
    return element_ * of_token * static_cast<double>(s_.local_batch * w_.seq_len) / tp_;
  }

  /// Rows that tp gathers are on each of its ranks.
  double kept(const LayerSizes& layer, Recompute recompute) const {
    const double rows = layer.rows * (cuts_matrices_of_experts(s_.mesh) ? tp_ : 1);
    return element_ * kept_elements(m_, layer, rows, recompute) * tokens();
  }
  double kept(const OfLayers& layers, Recompute recompute) const {
    return over_layers(m_, layers, [&](const LayerSizes& layer) { return kept(layer, recompute); });
  }

  /// What waits for its backward, and the layer that is run again.
  double activations() const {
    const auto layers = fullest(m_, std::min(largest_stage(w_, s_), m_.layers), s_.stages_per_rank);
    const bool keeps_all = s_.recompute == Recompute::kNone;
    const double again = keeps_all ? 0 : kept(largest_layer(m_), Recompute::kNone) + gathered_keys();
    const double keys = keeps_all ? (layers.dense + layers.expert) * gathered_keys() : 0;
    return held_microbatches() * (kept(layers, s_.recompute) + keys) + again;
  }

  /// Microbatches whose activations the first rank of a pipeline holds (1F1B: D. Narayanan et al., "Efficient
  /// large-scale language model training on GPU clusters using Megatron-LM", 2021, sections 2.2 and 3).
  double held_microbatches() const {
    const auto stages = static_cast<double>(s_.mesh.pp), per_rank = static_cast<double>(s_.stages_per_rank);
    const double most = s_.stages_per_rank > 1 ? stages + (stages - 1) / per_rank : stages;
    return std::min(static_cast<double>(microbatches(w_, s_)), most);
  }

  const ModelSizes& m_;
  const Workload& w_;
  const Settings& s_;
  double tp_, element_;
};

}  // namespace

MemoryForecast memory_of(const Workload& workload, const Settings& settings) {
  return Forecast(workload, settings).memory();
}

}  // namespace lockstep::trainer::forecast
