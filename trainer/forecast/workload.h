#pragma once
#include <cstdint>
#include <string_view>

#include "trainer/job/mesh_degrees.h"

/// What a step of training will take on machines that are not there yet: memory of a rank, and time. Nothing is run;
/// what is assumed and how well it agrees with runs is in docs/scale.md.
namespace lockstep::trainer::forecast {

/// A Llama of these sizes.
struct DenseModel {
  int64_t layers, width, heads, key_value_heads, head_size, hidden, vocabulary;
  bool tied_head = false;

  double layer_parameters() const;
  /// The table, or what gives logits.
  double table_parameters() const { return static_cast<double>(vocabulary * width); }
  double parameters() const;
  /// Of a layer's maps those that recompute "op" runs again: the second and the fourth.
  double again_with_op() const;
  /// Operations per token, as Model::operations_per_token() counts them.
  double operations_per_token(int64_t seq_len) const;
};

/// What backward runs again: values of activation_checkpoint, from most memory to least.
enum class Recompute : uint8_t { kNone, kLinear, kOp, kFull };
inline constexpr Recompute kAllRecomputes[] = {Recompute::kNone, Recompute::kLinear, Recompute::kOp, Recompute::kFull};
std::string_view text_of(Recompute recompute);

struct Workload {
  DenseModel model;
  int64_t seq_len;
  int64_t global_batch;  ///< sequences of a step
};

/// How a mesh runs it. Parameters, their gradients and AdamW's state are float32, computed is bfloat16; tp cuts
/// sequences between its products, too; with pp gradients are reduced, and parameters gathered, once a step (ZeRO-2).
struct Settings {
  MeshDegrees mesh;
  int64_t local_batch = 1;  ///< sequences of a microbatch
  Recompute recompute = Recompute::kNone;
  int64_t stages_per_rank = 1;  ///< above 1: interleaved

  /// Ranks that have shares of parameters.
  int64_t sharding() const { return mesh.dp_shard * mesh.cp; }
};

/// Layers of the largest stage of a rank, in which the embedding and the head count as one each; all of them without
/// pp.
int64_t largest_stage(const Workload& workload, const Settings& settings);

/// Microbatches of a step on each rank. REQUIRES: whole ones.
int64_t microbatches(const Workload& workload, const Settings& settings);
/// Tokens of a microbatch that a rank has of what tp does not cut.
double tokens_of(const Workload& workload, const Settings& settings);

}  // namespace lockstep::trainer::forecast
