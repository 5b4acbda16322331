#pragma once
#include <map>
#include <string>
#include <string_view>

#include "models/module.h"
#include "runtime/tensor/layout.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::trainer {

/// Which mesh axes cut which logical axis of a model: plain data, {"batch": {"dp_replicate", "dp_shard"}, "heads":
/// {"tp"}}.
using AxisRules = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Data parallel over the batch, tensor parallel over heads, feed-forward and vocabulary, sequence parallel for what
/// lies between the blocks (Korthikanti et al., 2022), context parallel over the sequence everywhere. Experts are
/// divided over expert_axes(), which then cut neither the samples nor the positions of what experts take. Throws as
/// that does.
AxisRules axis_rules(const MeshDegrees& mesh);

/// Turns logical axes into layouts on one mesh.
class ShardingPlan {
 public:
  ShardingPlan(const Mesh& mesh, AxisRules rules) : mesh_(&mesh), rules_(std::move(rules)) {}

  const Mesh& mesh() const { return *mesh_; }
  /// The same rules on another mesh: of a stage.
  ShardingPlan on(const Mesh& mesh) const { return {mesh, rules_}; }

  /// Of an activation of these sizes with the logical axes "batch length embed". Under canonical numerics all
  /// dimensions but the batch and experts are cut between leaves, so that sums over them need no gather.
  Layout activation(at::IntArrayRef sizes, std::string_view axes) const;

  /// Of a parameter in computation: tensor-parallel cuts only, in the parameter's units.
  Layout computing(const models::Parameter& parameter) const;

  /// Of a parameter at rest: as computed with, and cut by all shard axes that do not cut it yet (is_shard_axis()),
  /// inside the other cuts: along its first dimension, or the second if the first has fewer elements than ranks.
  /// A buffer is whole.
  Layout stored(const models::Parameter& parameter) const;

 private:
  Placements placements(std::string_view axes) const;

  const Mesh* mesh_;
  AxisRules rules_;
};

}  // namespace lockstep::trainer
