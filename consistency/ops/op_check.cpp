#include "consistency/ops/op_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "consistency/ops/rounding.h"
#include "consistency/ops/roundings.h"
#include "consistency/place_on_mesh.h"
#include "consistency/traced_op.h"
#include "core/digest/digest.h"
#include "core/error.h"
#include "core/state_ops.h"

namespace lockstep {
namespace {

/// On a mesh that this process has no rank of: there is nothing to compare.
bool is_elsewhere(const OpEvent& event) {
  const auto* mesh = mesh_of(event.plan);
  return mesh && mesh->local_count() == 0;
}

bool is_summed(const MoveEvent& event) {
  const auto& placement = event.before.layout[event.axis];
  return placement.is_partial() && (placement.reduction == Reduction::kSum || placement.reduction == Reduction::kAvg);
}

}  // namespace

OpCheck::OpCheck(const World& run, int64_t sample, Updates updates)
    : bits_(run.canonical()),
      sample_(sample),
      updates_(updates),
      declared_(run, run.domain()),
      double_(run, Domain::kFloat64) {}

/// A function of the id: the same on all ranks, and on all meshes.
bool OpCheck::is_sampled(const std::string& id) const {
  return sample_ == 1 || digest(id).high % static_cast<uint64_t>(sample_) == 0;
}

void OpCheck::before_op(const OpEvent& event) {
  if (is_elsewhere(event)) return;
  ++counts_.ops;
  auto id = event.id.text();
  const bool watches = updates_ == Updates::kAll;
  if (watches && event.id.phase == Phase::kOptimizer) seen_updates_.push_back(text_of_update(event.id));
  const bool is_wanted = (watches && writes_state(event.id.phase, event.id.op)) || is_sampled(id);
  if (!is_wanted || is_unwritten(event)) return;
  if (!bits_ && !has_bound(event)) return void(++counts_.without_bound);
  if (listener_) listener_(event);
  begun_.push_back({std::move(id), TakenOperands(event, bits_)});
}

void OpCheck::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (begun_.empty() || begun_.back().id != event.id.text()) return;
  const auto begun = std::move(begun_.back());
  begun_.pop_back();
  compare_with_one_device(event, begun.operands, results);
  ++counts_.compared_ops;
}

namespace {

/// Empty where one device gives results.
std::string refusal_of(OneDevice& device, const OpEvent& event, const std::vector<at::Tensor>& values,
                       std::vector<at::Tensor>& results) {
  try {
    results = device.run(event, values);
    return "";
  } catch (const c10::Error& error) {
    return fmt::format("one device refuses what the mesh took: {}", error.what_without_backtrace());
  } catch (const BadInput& error) {
    return fmt::format("one device refuses what the mesh took: {}", error.what());
  }
}

}  // namespace

void OpCheck::compare_with_one_device(const OpEvent& event, const TakenOperands& operands,
                                      std::span<const c10::IValue> results) {
  std::vector<HeldShards> shards;
  const auto given = readable_results(event, results);
  for (const auto& result : given) shards.push_back(all_shards(local_shards(result.tensor)));
  const auto values = operands.values(event);
  std::vector<at::Tensor> expected;
  auto blame = blame_of("op", event);
  blame.worst = refusal_of(declared_, event, values, expected);
  if (blame.worst.empty()) {
    size_t wrong = 0;
    const auto difference = first_difference({event, operands, values, expected}, shards, wrong);
    if (!difference) return;
    blame = blame_of(event, *difference, *shards[wrong].spec);
  }
  if (blame_) return;
  for (size_t r = 0; r < expected.size(); ++r)
    if (!given[r].is_alias) expected_.push_back(expected[r]);
  note(std::move(blame));
}

std::optional<Difference> OpCheck::first_difference(const TakenOp& op, const std::vector<HeldShards>& results,
                                                    size_t& wrong) {
  LOCKSTEP_CHECK_EQ(op.expected.size(), results.size(), "results of {}", op.event.id.text());
  if (!bits_ && are_close_enough(op, results)) return std::nullopt;
  std::vector<Difference> all;
  if (!bits_) all = differences_beyond_rounding(op, results, double_);
  for (size_t r = 0; r < results.size(); ++r) {
    wrong = r;
    if (bits_) all.push_back(difference_of_result(op.event, results[r], op.expected[r], kBits));
    counts_.over_bound = std::max(counts_.over_bound, all[r].over_bound);
    if (all[r].agrees()) continue;
    all[r].kind = result_name(r, results.size()), all[r].name = op.event.id.op;
    return std::move(all[r]);
  }
  return std::nullopt;
}

void OpCheck::after_move(const MoveEvent& event) {
  ++counts_.moves;
  const bool is_update = updates_ == Updates::kAll && shares_update(event.id.op);
  if (!is_update && !is_sampled(fmt::format("{} {}", event.id.text(), event.axis))) return;
  ++counts_.compared_moves;
  const auto before = all_shards(local_shards(event.before, event.shards_before));
  auto after = all_shards(local_shards(event.after, event.shards_after));
  after.source = &event.before;
  const auto whole = whole_of(before);
  if (!bits_ && are_close(after, whole, {})) return;
  auto difference = !bits_ && is_summed(event) ? difference_beyond_rounding(event, before, after)
                                               : difference_of(after, whole, bits_ ? kBits : 0);
  counts_.over_bound = std::max(counts_.over_bound, difference.over_bound);
  if (difference.agrees()) return;
  difference.kind = "value", difference.name = event.id.op;
  if (!blame_) moved_.emplace(event);
  note(blame_of(event, difference));
}

void OpCheck::note(Blame blame) {
  if (blame_) return;
  blame_ = std::move(blame);
  blame_->position = counts_.ops + counts_.moves;
  blame_->before = counts_.text() + ", compared with one device each, agree";
}

std::string OpCheck::Counts::text() const {
  const auto left_out = without_bound > 0 ? fmt::format(" ({} have no bound)", without_bound) : "";
  return fmt::format("{} of {} ops{} and {} of {} moves", compared_ops, ops, left_out, compared_moves, moves);
}

}  // namespace lockstep
