#include "trainer/mutation/survey.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "consistency/blame.h"
#include "consistency/traced_op.h"
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
  if (kind == Kind::kBatch) return fmt::format("{} that the step is given", tensor);
  if (kind == Kind::kRate) return fmt::format("{} that the step is given", tensor);
  if (kind == Kind::kSaved || kind == Kind::kMetadata) return fmt::format("{} in the checkpoint", tensor);
  if (kind == Kind::kGradient) return fmt::format("gradient of {} from microbatch {}", tensor, id.microbatch);
  auto where = fmt::format("microbatch {}, {}, {}{}{} #{}", id.microbatch, to_text(id.phase), id.module,
                           id.module.empty() ? "" : ", ", id.op, id.occurrence);
  if (kind == Kind::kDraw) return fmt::format("draw {} of {}", ordinal, where);
  if (kind == Kind::kOperand || kind == Kind::kArgument) return fmt::format("{} of {}", tensor, where);
  if (kind == Kind::kOp) return (is_view ? "view " : "") + where;
  return fmt::format("{} on {} in {}", collective.empty() ? "local move" : collective, axis, where);
}

/// Operands that ranks have apart from each other, and that can be written.
void Survey::before_op(const OpEvent& event) {
  if (!event.plan.rule) return;
  const auto rule = blame_of("operand", event).rule;
  for (const auto& operand : operands_of(event.arguments)) {
    if (!is_sharded(operand.tensor) || spec_of(operand.tensor).element_count() == 0) continue;
    const auto& shards = sharded(operand.tensor).shards()->local_tensors();
    const auto is_dense = [](const at::Tensor& shard) { return shard.is_non_overlapping_and_dense(); };
    if (shards.size() < 2 || !std::all_of(shards.begin(), shards.end(), is_dense)) continue;
    const auto& argument = event.op.schema().arguments()[static_cast<size_t>(operand.argument)];
    sites_.push_back({.kind = Site::Kind::kOperand,
                      .id = of_any_step(event.id),
                      .ordinal = operand.argument,
                      .element = operand.element,
                      .rule = rule,
                      .tensor = argument.name(),
                      .is_float = operand.tensor.is_floating_point(),
                      .is_uneven = is_uneven(spec_of(operand.tensor)),
                      .is_partial = spec_of(operand.tensor).any_partial});
  }
  add_arguments(event);
}

/// Numbers that are floats, and of integers those that say where something begins.
void Survey::add_arguments(const OpEvent& event) {
  static const std::set<std::string, std::less<>> places{"start", "diagonal", "offset", "index", "first", "position"};
  for (size_t a = 0; a < event.arguments.size(); ++a) {
    const auto& value = event.arguments[a];
    const auto& name = event.op.schema().arguments()[a].name();
    const bool is_number = value.isTensor() && value.toTensor().defined() && !is_sharded(value.toTensor()) &&
                           value.toTensor().dim() == 0 && value.toTensor().is_floating_point();
    const bool is_place = value.isInt() && places.contains(name);
    if (!value.isDouble() && !is_number && !is_place) continue;
    if (event.plan.results.empty() || event.plan.results[0]->layout.mesh().local_count() < 2) continue;
    sites_.push_back({.kind = Site::Kind::kArgument,
                      .id = of_any_step(event.id),
                      .ordinal = static_cast<int64_t>(a),
                      .rule = blame_of("op", event).rule,
                      .tensor = name,
                      .is_float = !is_place,
                      .is_partial = event.plan.results[0]->any_partial});
  }
}

void Survey::take_gradient(int64_t microbatch, const std::string& parameter, at::Tensor& gradient) {
  if (!gradients_.insert(fmt::format("{} {}", microbatch, parameter)).second) return;
  if (layout_of(gradient).mesh().local_count() < 2) return;
  sites_.push_back({.kind = Site::Kind::kGradient,
                    .id = {.microbatch = microbatch},
                    .tensor = parameter,
                    .is_uneven = is_uneven(spec_of(gradient)),
                    .is_partial = spec_of(gradient).any_partial});
}

void Survey::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto rule = blame_of("op", event).rule;
  int64_t number = 0;
  for (const auto& result : op_results(event, results)) {
    const auto ordinal = number++;
    if (sharded(result.tensor).shards()->is_pending()) continue;
    const auto& spec = spec_of(result.tensor);
    if (spec.element_count() == 0 || spec.layout.mesh().local_count() < 2) continue;
    sites_.push_back({.kind = Site::Kind::kOp,
                      .id = of_any_step(event.id),
                      .ordinal = ordinal,
                      .rule = rule,
                      .is_float = result.tensor.is_floating_point(),
                      .is_uneven = is_uneven(spec),
                      .is_replicated = is_replicated(spec.layout),
                      .is_partial = spec.any_partial,
                      .is_view = result.is_alias});
  }
  if (event.plan.rule && event.plan.rule->traits & Rule::kRandom)
    sites_.push_back({.kind = Site::Kind::kDraw, .id = of_any_step(event.id), .ordinal = draws_++, .rule = rule});
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
                    .is_partial = event.after.any_partial,
                    .is_reduction = event.before.layout[event.axis].is_partial()});
}

}  // namespace lockstep::trainer
