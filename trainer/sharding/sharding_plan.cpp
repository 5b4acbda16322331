#include "trainer/sharding/sharding_plan.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/kernels/sums/sum_tree.h"
#include "trainer/gradients/shard_axes.h"
#include "trainer/job/expert_degrees.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kExperts = "experts";

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

/// Whether a shard axis is left over by what cuts in computation.
bool cuts_at_rest(const Layout& computing, int axis) {
  return is_shard_axis(computing.mesh(), axis) && !computing[axis].is_shard();
}

int dim_at_rest(at::IntArrayRef sizes, const Layout& computing) {
  int64_t ranks = 1;
  for (int axis = 0; axis < computing.axis_count(); ++axis)
    if (computing[axis].is_shard(0) || cuts_at_rest(computing, axis)) ranks *= computing.mesh().axis_size(axis);
  return dim_for_ranks(sizes, ranks);
}

}  // namespace

AxisRules axis_rules(const MeshDegrees& mesh) {
  const auto names = expert_axes(mesh);
  const std::vector<std::string> experts(names.begin(), names.end());
  const auto others = [&](std::vector<std::string> axes) {
    std::erase_if(axes, [&](const auto& axis) { return std::ranges::find(experts, axis) != experts.end(); });
    return axes;
  };
  const std::vector<std::string> tensor{axis::kTensor}, context{axis::kContext};
  const std::vector<std::string> data{axis::kReplicate, axis::kShard, axis::kShardInExperts};
  return {{"batch", data},
          {"heads", tensor},
          {"ffn", tensor},
          {"vocab", tensor},
          {"length", context},
          {"norm_length", {axis::kContext, axis::kTensor}},
          {kExperts, experts},
          {"expert_batch", others(data)},
          {"expert_length", others(context)},
          {"expert_ffn", cuts_matrices_of_experts(mesh) ? tensor : std::vector<std::string>{}}};
}

Placements ShardingPlan::placements(std::string_view axes) const {
  Placements cuts(static_cast<size_t>(mesh_->axis_count()), Placement::replicate());
  const auto names = words(axes);
  for (size_t dim = 0; dim < names.size(); ++dim) {
    const auto rule = rules_.find(names[dim]);
    if (rule == rules_.end()) continue;
    for (const auto& axis : rule->second)
      if (const int found = mesh_->find_axis(axis); found >= 0)
        cuts[static_cast<size_t>(found)] = Placement::shard(static_cast<int>(dim));
  }
  return with_mesh_order(cuts);
}

Layout ShardingPlan::activation(at::IntArrayRef sizes, std::string_view axes) const {
  auto cuts = placements(axes);
  const auto names = words(axes);
  const auto is_summed = [&](int dim) { return dim > 0 && names[static_cast<size_t>(dim)] != kExperts; };
  if (mesh_->world().canonical())
    for (auto& placement : cuts)
      if (placement.is_shard() && is_summed(placement.dim))
        placement.unit = SumTree::over_elements(sizes[static_cast<size_t>(placement.dim)]).leaf;
  return Layout(*mesh_, std::move(cuts));
}

Layout ShardingPlan::computing(const models::Parameter& parameter) const {
  auto cuts = placements(parameter.axes());
  for (auto& placement : cuts)
    if (placement.is_shard()) placement.unit = parameter.units()[static_cast<size_t>(placement.dim)];
  return Layout(*mesh_, std::move(cuts));
}

Layout ShardingPlan::stored(const models::Parameter& parameter) const {
  if (parameter.is_buffer()) return Layout::replicated(*mesh_);
  auto layout = computing(parameter);
  if (parameter.sizes().empty()) return layout;
  const int dim = dim_at_rest(parameter.sizes(), layout);
  for (int axis = layout.axis_count(); axis-- > 0;)  // sums join neighbours first: they are scattered as they join
    if (cuts_at_rest(layout, axis)) layout = layout.with(axis, Placement::shard(dim));
  return layout;
}

}  // namespace lockstep::trainer
