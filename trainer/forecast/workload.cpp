#include "trainer/forecast/workload.h"

#include <algorithm>

namespace lockstep::trainer::forecast {

std::string_view text_of(Recompute recompute) {
  static constexpr std::string_view kTexts[] = {"none", "linear", "op", "full"};
  return kTexts[static_cast<size_t>(recompute)];
}

OfLayers layers_of(const ModelSizes& model) {
  const auto experts = static_cast<double>(model.experts.layers);
  return {static_cast<double>(model.layers) - experts, experts};
}

OfLayers fullest(const ModelSizes& model, int64_t layers, int64_t runs) {
  const int64_t run = (layers + runs - 1) / runs, of_run = (run + model.experts.every - 1) / model.experts.every;
  const int64_t experts = std::min({layers, model.experts.layers, runs * of_run});
  return {static_cast<double>(layers - experts), static_cast<double>(experts)};
}

RankParameters rank_parameters(const LayerSizes& layer, const Settings& s) {
  return {layer.everywhere / static_cast<double>(s.mesh.tp), layer.routed / static_cast<double>(s.expert_degree())};
}

RankParameters rank_parameters(const ModelSizes& model, const OfLayers& layers, const Settings& settings) {
  const auto all = [&](double RankParameters::*part) {
    return over_layers(model, layers, [&](const LayerSizes& layer) { return rank_parameters(layer, settings).*part; });
  };
  return {all(&RankParameters::everywhere), all(&RankParameters::routed)};
}

int64_t largest_stage(const Workload& workload, const Settings& settings) {
  if (settings.mesh.pp == 1) return workload.model.layers;
  const int64_t stages = settings.mesh.pp * settings.stages_per_rank, units = workload.model.layers + 2;
  return (units + stages - 1) / stages * settings.stages_per_rank;
}

int64_t microbatches(const Workload& workload, const Settings& settings) {
  return workload.global_batch / (settings.mesh.data_parallel() * settings.local_batch);
}

double tokens_of(const Workload& workload, const Settings& settings) {
  return static_cast<double>(settings.local_batch * workload.seq_len) / static_cast<double>(settings.mesh.cp);
}

}  // namespace lockstep::trainer::forecast
