#include "trainer/sharding_plan.h"

#include "core/error.h"

namespace lockstep::trainer {
namespace {

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

AxisRules default_axis_rules() {
  return {{"batch", {"dp_replicate", "dp_shard"}},
          {"heads", {"tp"}},
          {"ffn", {"tp"}},
          {"vocab", {"tp"}},
          {"norm_length", {"tp"}}};
}

Layout ShardingPlan::activation(std::string_view axes) const {
  Placements placements(static_cast<size_t>(mesh_->axis_count()), Placement::replicate());
  const auto names = words(axes);
  for (size_t dim = 0; dim < names.size(); ++dim) {
    const auto rule = rules_.find(names[dim]);
    if (rule == rules_.end()) continue;
    for (const auto& axis : rule->second)
      if (const int found = mesh_->find_axis(axis); found >= 0)
        placements[static_cast<size_t>(found)] = Placement::shard(static_cast<int>(dim));
  }
  return Layout(*mesh_, with_mesh_order(placements));
}

Layout ShardingPlan::computing(const models::Parameter& parameter) const {
  auto placements = activation(parameter.axes()).placements();
  for (auto& placement : placements)
    if (placement.is_shard()) placement.unit = parameter.units()[static_cast<size_t>(placement.dim)];
  return Layout(*mesh_, std::move(placements));
}

Layout ShardingPlan::stored(const models::Parameter& parameter) const {
  const auto layout = computing(parameter);
  const int axis = mesh_->find_axis("dp_shard");
  return axis < 0 || parameter.sizes().empty() ? layout : layout.with(axis, Placement::shard(0));
}

}  // namespace lockstep::trainer
