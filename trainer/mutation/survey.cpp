#include "trainer/mutation/survey.h"

#include <fmt/format.h>

#include <set>

#include "core/collective_kind.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/rule.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

OpId of_any_step(OpId id) {
  id.step = 0;
  return id;
}

bool is_uneven(const TensorSpec& spec) { return std::set(spec.local_sizes.begin(), spec.local_sizes.end()).size() > 1; }

bool is_replicated(const Layout& layout) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (layout[axis].is_replicate() && layout.mesh().axis_size(axis) > 1) return true;
  return false;
}

}  // namespace

std::string site_key(const OpId& id) { return of_any_step(id).text(); }

std::string Site::text() const {
  if (kind == Kind::kState) return fmt::format("{} between two steps", tensor);
  if (kind == Kind::kNumber) return fmt::format("{} of the optimizer", tensor);
  auto where = fmt::format("microbatch {}, {}, {}{}{} #{}", id.microbatch, to_text(id.phase), id.module,
                           id.module.empty() ? "" : ", ", id.op, id.occurrence);
  if (kind == Kind::kDraw) return fmt::format("draw {} of {}", ordinal, where);
  if (kind == Kind::kOp) return where;
  return fmt::format("{} on {} in {}", collective.empty() ? "local move" : collective, axis, where);
}

void Survey::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  int64_t number = 0;
  for (const auto& result : op_results(event, results)) {
    const auto ordinal = number++;
    if (result.is_alias || sharded(result.tensor).shards()->is_pending()) continue;
    const auto& spec = spec_of(result.tensor);
    if (spec.element_count() == 0 || spec.layout.mesh().local_count() < 2) continue;
    sites_.push_back({.kind = Site::Kind::kOp,
                      .id = of_any_step(event.id),
                      .ordinal = ordinal,
                      .is_float = result.tensor.is_floating_point(),
                      .is_uneven = is_uneven(spec),
                      .is_replicated = is_replicated(spec.layout)});
  }
  if (event.plan.rule && event.plan.rule->traits & Rule::kRandom)
    sites_.push_back({.kind = Site::Kind::kDraw, .id = of_any_step(event.id), .ordinal = draws_++});
}

void Survey::before_collective(const CollectiveEvent& event) {
  const auto& axis = event.mesh.axes()[static_cast<size_t>(event.axis)];
  if (axis.size < 2) return;
  sites_.push_back(
      {.kind = Site::Kind::kPieces,
       .id = of_any_step(event.id),
       .ordinal = pieces_[site_key(event.id)]++,
       .collective = to_text(event.kind),
       .axis = axis.name,
       .axis_size = axis.size,
       .is_float = c10::isFloatingType(event.dtype),
       .is_reduction = event.kind == CollectiveKind::kReduceScatter || event.kind == CollectiveKind::kAllReduce});
}

void Survey::after_move(const MoveEvent& event) {
  const auto ordinal = moves_[site_key(event.id)]++;
  const auto& axis = event.before.layout.mesh().axes()[static_cast<size_t>(event.axis)];
  if (event.after.element_count() == 0) return;
  sites_.push_back({.kind = Site::Kind::kMove,
                    .id = of_any_step(event.id),
                    .ordinal = ordinal,
                    .collective = event.kind ? to_text(*event.kind) : "",
                    .axis = axis.name,
                    .axis_size = axis.size,
                    .is_float = c10::isFloatingType(event.after.dtype),
                    .is_uneven = is_uneven(event.after) || is_uneven(event.before),
                    .is_reduction = event.before.layout[event.axis].is_partial()});
}

}  // namespace lockstep::trainer
