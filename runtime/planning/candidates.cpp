#include "core/error.h"
#include "runtime/planning/choose_layouts.h"

namespace lockstep {
namespace {

bool vanishes(const OpSharding& sharding, int label) {
  for (const auto& dims : sharding.results)
    if (OpSharding::find(dims, label) < 0) return true;
  return false;
}

Candidate whole(const OpSharding& sharding) {
  return {std::vector<Placement>(sharding.operands.size()), std::vector<Placement>(sharding.results.size())};
}

Placement shard_of(const OpShardingDims& dims, int label) {
  const int dim = OpSharding::find(dims, label);
  return Placement::shard(dim, dims[static_cast<size_t>(dim)].factor);
}

Candidate cut_label(const OpSharding& sharding, int label) {
  auto candidate = whole(sharding);
  const bool contracts = vanishes(sharding, label);
  for (size_t i = 0; i < sharding.operands.size(); ++i) {
    if (OpSharding::find(sharding.operands[i], label) >= 0)
      candidate.operands[i] = shard_of(sharding.operands[i], label);
    else if (contracts && sharding.linearity[i] == Linearity::kAdditive)
      candidate.operands[i] = Placement::partial();
  }
  for (size_t r = 0; r < sharding.results.size(); ++r)
    candidate.results[r] = OpSharding::find(sharding.results[r], label) >= 0 ? shard_of(sharding.results[r], label)
                                                                             : Placement::partial(sharding.reduction);
  if (contracts) candidate.summed = label;
  return candidate;
}

/// Partial in operand `only` (or in all joint operands when it is -1) and in every result.
Candidate pass_partial(const OpSharding& sharding, int only, Reduction reduction) {
  auto candidate = whole(sharding);
  for (size_t i = 0; i < sharding.operands.size(); ++i) {
    const bool joins = only < 0 ? sharding.linearity[i] == Linearity::kJoint
                                : static_cast<int>(i) == only || sharding.linearity[i] == Linearity::kAdditive;
    if (joins) candidate.operands[i] = Placement::partial(reduction);
  }
  for (auto& result : candidate.results) result = Placement::partial(reduction);
  return candidate;
}

}  // namespace

std::vector<Candidate> candidates(const OpSharding& sharding, const std::vector<Reduction>& partials) {
  std::vector<Candidate> result;
  for (int label = 0; label < sharding.label_count(); ++label) {
    bool used = false;
    for (const auto* side : {&sharding.operands, &sharding.results})
      for (const auto& dims : *side) used |= OpSharding::find(dims, label) >= 0;
    if (used && (sharding.can_reduce || !vanishes(sharding, label))) result.push_back(cut_label(sharding, label));
  }
  result.push_back(whole(sharding));
  for (const auto reduction : partials) {
    if (reduction != Reduction::kSum && reduction != Reduction::kAvg) continue;
    bool any_joint = false;
    for (size_t i = 0; i < sharding.operands.size(); ++i) {
      any_joint |= sharding.linearity[i] == Linearity::kJoint;
      if (sharding.linearity[i] == Linearity::kEach)
        result.push_back(pass_partial(sharding, static_cast<int>(i), reduction));
    }
    if (any_joint) result.push_back(pass_partial(sharding, -1, reduction));
  }
  return result;
}

}  // namespace lockstep
