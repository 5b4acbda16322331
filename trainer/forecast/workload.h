#pragma once
#include <cstdint>
#include <string_view>

#include "trainer/forecast/model_sizes.h"
#include "trainer/job/expert_degrees.h"
#include "trainer/job/mesh_degrees.h"

/// What a step of training will take on machines that are not there yet: memory of a rank, and time. Nothing is run;
/// what is assumed and how well it agrees with runs is in docs/scale.md.
namespace lockstep::trainer::forecast {

/// What backward runs again: values of activation_checkpoint, from most memory to least.
enum class Recompute : uint8_t { kNone, kLinear, kOp, kFull };
inline constexpr Recompute kAllRecomputes[] = {Recompute::kNone, Recompute::kLinear, Recompute::kOp, Recompute::kFull};
std::string_view text_of(Recompute recompute);

struct Workload {
  ModelSizes model;
  int64_t seq_len;
  int64_t global_batch;  ///< sequences of a step
};

/// How a mesh runs it. Parameters, their gradients and AdamW's state are float32, whatever is computed in; tp cuts
/// sequences between its products, too; with pp gradients are reduced, and parameters gathered, once a step (ZeRO-2).
/// Tokens choose all experts alike.
struct Settings {
  MeshDegrees mesh;
  int64_t local_batch = 1;  ///< sequences of a microbatch
  Recompute recompute = Recompute::kNone;
  int64_t stages_per_rank = 1;  ///< above 1: interleaved
  int64_t element_bytes = 2;    ///< of what is computed in: bfloat16, or 4, float32

  /// Ranks that have shares of the same parameters.
  int64_t sharding() const { return mesh.dp_shard * mesh.cp; }
  /// Ranks that all experts of a layer are on together, and those that have shares of the same expert.
  int64_t expert_degree() const { return mesh.ep * (cuts_matrices_of_experts(mesh) ? mesh.tp : 1); }
  int64_t expert_sharding() const { return sharding() * mesh.tp / expert_degree(); }
};

/// Something of layers of both kinds.
struct OfLayers {
  double dense = 0, expert = 0;  ///< without experts, with them
};

/// The sum of what `of` gives for each layer.
template <class Function>
double over_layers(const ModelSizes& model, const OfLayers& layers, const Function& of) {
  return layers.dense * of(dense_layer(model)) + (model.has_experts() ? layers.expert * of(expert_layer(model)) : 0);
}

/// The model's layers.
OfLayers layers_of(const ModelSizes& model);
/// Those of so many layers, in so many equal runs, where these have most with experts.
OfLayers fullest(const ModelSizes& model, int64_t layers, int64_t runs);

/// Parameters that a rank multiplies with, those of others gathered.
struct RankParameters {
  double everywhere = 0, routed = 0;

  double all() const { return everywhere + routed; }
};
RankParameters rank_parameters(const LayerSizes& layer, const Settings& settings);
/// Of so many layers.
RankParameters rank_parameters(const ModelSizes& model, const OfLayers& layers, const Settings& settings);

/// Layers of the largest stage of a rank, in which the embedding and the head count as one each; all of them without
/// pp.
int64_t largest_stage(const Workload& workload, const Settings& settings);

/// Microbatches of a step on each rank. REQUIRES: whole ones.
int64_t microbatches(const Workload& workload, const Settings& settings);
/// Tokens of a microbatch that a rank has of what tp does not cut.
double tokens_of(const Workload& workload, const Settings& settings);

}  // namespace lockstep::trainer::forecast
