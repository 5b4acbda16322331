#include "trainer/sharding/sharding_plan.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/kernels/sums/sum_tree.h"
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

}  // namespace

AxisRules axis_rules(const MeshDegrees& mesh) {
  const auto names = expert_axes(mesh);
  const std::vector<std::string> experts(names.begin(), names.end());
  const auto others = [&](std::vector<std::string> axes) {
    std::erase_if(axes, [&](const auto& axis) { return std::ranges::find(experts, axis) != experts.end(); });
    return axes;
  };
  const std::vector<std::string> tensor{axis::kTensor}, context{axis::kContext};
  return {{"batch", {axis::kReplicate, axis::kShard}},
          {"heads", tensor},
          {"ffn", tensor},
          {"vocab", tensor},
          {"length", context},
          {"norm_length", {axis::kContext, axis::kTensor}},
          {kExperts, experts},
          {"expert_batch", others({axis::kReplicate, axis::kShard})},
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
  const auto layout = computing(parameter);
  const int axis = mesh_->find_axis(axis::kShard);
  return axis < 0 || parameter.sizes().empty() ? layout : layout.with(axis, Placement::shard(0));
}

}  // namespace lockstep::trainer
