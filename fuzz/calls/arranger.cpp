#include "fuzz/calls/arranger.h"

#include <rapidcheck.h>

#include "core/error.h"
#include "fuzz/calls/drawn_mesh.h"

namespace lockstep::testing {
namespace {

bool lie_alike(const Placement& a, const Placement& b) {
  return a.kind == b.kind && a.dim == b.dim && a.reduction == b.reduction;
}

bool lie_alike(const std::vector<Placement>& a, const std::vector<Placement>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return lie_alike(x, y); });
}

bool may_be_partial(const at::Tensor& tensor, Reduction reduction) {
  return has_sums(tensor) && (reduction != Reduction::kAvg || tensor.is_floating_point());
}

}  // namespace

Arranger::Arranger(const Mesh& mesh, const OpSharding& sharding)
    : mesh_(mesh), form_(sharding), all_(candidates(sharding, {Reduction::kSum, Reduction::kAvg})) {
  for (int label = 0; label < sharding.label_count(); ++label) {
    units_.emplace_back();
    for (int axis = 0; axis < mesh.axis_count(); ++axis)
      units_.back().push_back(*rc::gen::weightedElement<int64_t>({{3, 1}, {1, 2}, {1, 3}}));
  }
  for (int axis = 0; axis < mesh.axis_count(); ++axis) order_.push_back(axis);
  if (order_.size() > 1 && *rc::gen::arbitrary<bool>()) std::reverse(order_.begin(), order_.end());
}

std::vector<size_t> Arranger::draw_choice() const {
  std::vector<size_t> chosen;
  for (int axis = 0; axis < mesh_.axis_count(); ++axis) chosen.push_back(*rc::gen::inRange<size_t>(0, all_.size()));
  return chosen;
}

Layout Arranger::layout(const OpShardingDims& dims, const std::vector<size_t>& chosen, bool result,
                        size_t index) const {
  Placements placements(chosen.size());
  std::map<int, uint8_t> depths;
  for (const int axis : order_) {
    const auto a = static_cast<size_t>(axis);
    const auto& candidate = all_[chosen[a]];
    auto placement = (result ? candidate.results : candidate.operands)[index];
    if (placement.is_shard()) {
      const auto& dim = dims[static_cast<size_t>(placement.dim)];
      placement.unit = units_[static_cast<size_t>(dim.label)][a] * dim.factor;
      placement.depth = depths[placement.dim]++;
    }
    placements[a] = placement;
  }
  return Layout(mesh_, std::move(placements));
}

std::optional<ChosenLayouts> Arranger::arrange(const std::vector<size_t>& chosen, const OpCall& call) const {
  try {
    ChosenLayouts choice;
    for (size_t i = 0; i < form_.operands.size(); ++i) {
      choice.operands.push_back(layout(form_.operands[i], chosen, false, i));
      for (const auto& placement : choice.operands.back().placements())
        if (placement.is_partial() && !may_be_partial(call.tensor(i), placement.reduction)) return std::nullopt;
    }
    for (size_t r = 0; r < form_.results.size(); ++r)
      choice.results.push_back(layout(form_.results[r], chosen, true, r));
    return choice;
  } catch (const BadInput&) {
    return std::nullopt;
  }
}

bool Arranger::predicts(const std::vector<size_t>& chosen, size_t result, const Layout& layout) const {
  for (size_t axis = 0; axis < chosen.size(); ++axis) {
    const auto& operands = all_[chosen[axis]].operands;
    const auto fits = [&](const Candidate& candidate) {
      return lie_alike(candidate.operands, operands) &&
             lie_alike(candidate.results[result], layout[static_cast<int>(axis)]);
    };
    if (std::none_of(all_.begin(), all_.end(), fits)) return false;
  }
  return true;
}

}  // namespace lockstep::testing
