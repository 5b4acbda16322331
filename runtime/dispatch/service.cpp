#include "runtime/dispatch/service.h"

#include <algorithm>

#include "runtime/dispatch/composed/kernels.h"
#include "runtime/dispatch/composed/whole_ops.h"
#include "runtime/dispatch/functional_forms.h"
#include "runtime/dispatch/native_kernels.h"
#include "runtime/planning/make_plan.h"

namespace lockstep {
namespace {

Service missing(const c10::OperatorHandle& op) { return {Service::kMissing, {}, reason_for_none(op)}; }

Service service_of_out(const RuleSet& rules, const c10::OperatorHandle& functional) {
  const auto of_functional = service_of(rules, functional);
  if (of_functional.way == Service::kMissing)
    return {Service::kMissing, {}, op_name(functional) + ": " + of_functional.reason};
  return {Service::kOut, op_name(functional), {}};
}

bool decomposes(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
}

}  // namespace

Service service_of(const RuleSet& rules, const c10::OperatorHandle& op) {
  const auto& name = op_name(op);
  if (const auto* row = rules.find(name)) return {name == row->op ? Service::kRow : Service::kInPlace, row->op, {}};
  if (is_whole_op(name)) return {Service::kWhole, {}, {}};
  if (native_kernels().contains(name) || composed_kernels().contains(name)) return {Service::kKernel, {}, {}};
  if (touches_a_storage(name)) return missing(op);
  if (const auto functional = functional_of_out(op)) return service_of_out(rules, *functional);
  if (decomposes(op) && decomposition_is_tried(name))
    return {name.starts_with("_foreach_") ? Service::kForeach : Service::kDecomposition, {}, {}};
  return missing(op);
}

std::vector<Served> all_served(const RuleSet& rules) {
  std::vector<Served> all;
  for (const auto& op : tensor_ops()) {
    const auto& schema = op.schema();
    const bool functional = !is_out_form(schema) && !is_in_place_form(schema) && !op_name(op).starts_with("_foreach_");
    all.push_back({op_name(op), service_of(rules, op), functional});
  }
  for (const auto& [op, rule] : rules.rows())
    if (is_own_op(rule)) all.push_back({op, {Service::kRow, op, {}}, false});
  return all;
}

std::string_view to_text(Service::Way way) {
  constexpr std::string_view kTexts[] = {"row",           "in place", "out",    "foreach",
                                         "decomposition", "whole",    "kernel", "missing"};
  return kTexts[way];
}

}  // namespace lockstep
