#pragma once
#include <map>
#include <string>
#include <string_view>

#include "models/module.h"
#include "runtime/tensor/layout.h"

namespace lockstep::trainer {

/// Which mesh axes cut which logical axis of a model: plain data, {"batch": {"dp_replicate", "dp_shard"}, "heads":
/// {"tp"}}.
using AxisRules = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Data parallel over the batch, tensor parallel over heads, feed-forward and vocabulary, sequence parallel for what
/// lies between the blocks (Korthikanti et al., 2022), context parallel over the sequence everywhere.
AxisRules default_axis_rules();

/// Turns logical axes into layouts on one mesh.
class ShardingPlan {
 public:
  ShardingPlan(const Mesh& mesh, AxisRules rules) : mesh_(&mesh), rules_(std::move(rules)) {}

  const Mesh& mesh() const { return *mesh_; }

  /// Of an activation of these sizes with the logical axes "batch length embed". Under canonical numerics all
  /// dimensions but the batch are cut between leaves, so that sums over them need no gather.
  Layout activation(at::IntArrayRef sizes, std::string_view axes) const;

  /// Of a parameter in computation: tensor-parallel cuts only, in the parameter's units.
  Layout computing(const models::Parameter& parameter) const;

  /// Of a parameter at rest: as computed with, and cut along its first dimension by dp_shard, inside the other cuts.
  Layout stored(const models::Parameter& parameter) const;

 private:
  Placements placements(std::string_view axes) const;

  const Mesh* mesh_;
  AxisRules rules_;
};

}  // namespace lockstep::trainer
