#include "core/error.h"
#include "runtime/choose.h"

namespace lockstep {
namespace {

bool vanishes(const Form& form, int label) {
  for (const auto& dims : form.results)
    if (Form::find(dims, label) < 0) return true;
  return false;
}

Candidate whole(const Form& form) {
  return {std::vector<Placement>(form.operands.size()), std::vector<Placement>(form.results.size())};
}

Placement shard_of(const FormDims& dims, int label) {
  const int dim = Form::find(dims, label);
  return Placement::shard(dim, dims[static_cast<size_t>(dim)].factor);
}

Candidate cut_label(const Form& form, int label) {
  auto candidate = whole(form);
  const bool contracts = vanishes(form, label);
  for (size_t i = 0; i < form.operands.size(); ++i) {
    if (Form::find(form.operands[i], label) >= 0)
      candidate.operands[i] = shard_of(form.operands[i], label);
    else if (contracts && form.linearity[i] == Linearity::kAdditive)
      candidate.operands[i] = Placement::partial();
  }
  for (size_t r = 0; r < form.results.size(); ++r)
    candidate.results[r] =
        Form::find(form.results[r], label) >= 0 ? shard_of(form.results[r], label) : Placement::partial(form.reduction);
  if (contracts) candidate.summed = label;
  return candidate;
}

/// Partial in operand `only` (or in all joint operands when it is -1) and in every result.
Candidate pass_partial(const Form& form, int only, Reduction reduction) {
  auto candidate = whole(form);
  for (size_t i = 0; i < form.operands.size(); ++i) {
    const bool joins = only < 0 ? form.linearity[i] == Linearity::kJoint
                                : static_cast<int>(i) == only || form.linearity[i] == Linearity::kAdditive;
    if (joins) candidate.operands[i] = Placement::partial(reduction);
  }
  for (auto& result : candidate.results) result = Placement::partial(reduction);
  return candidate;
}

}  // namespace

std::vector<Candidate> candidates(const Form& form, const std::vector<Reduction>& partials) {
  std::vector<Candidate> result;
  for (int label = 0; label < form.label_count(); ++label) {
    bool used = false;
    for (const auto* side : {&form.operands, &form.results})
      for (const auto& dims : *side) used |= Form::find(dims, label) >= 0;
    if (used && (form.can_reduce || !vanishes(form, label))) result.push_back(cut_label(form, label));
  }
  result.push_back(whole(form));
  for (const auto reduction : partials) {
    if (reduction != Reduction::kSum && reduction != Reduction::kAvg) continue;
    bool any_joint = false;
    for (size_t i = 0; i < form.operands.size(); ++i) {
      any_joint |= form.linearity[i] == Linearity::kJoint;
      if (form.linearity[i] == Linearity::kEach) result.push_back(pass_partial(form, static_cast<int>(i), reduction));
    }
    if (any_joint) result.push_back(pass_partial(form, -1, reduction));
  }
  return result;
}

}  // namespace lockstep
