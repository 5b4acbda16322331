// One call compared with one device.
#include "fuzz/trials/rule_trial.h"

#include <rapidcheck.h>

#include "core/error.h"
#include "fuzz/calls/two_groups.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

bool is_low_precision(const at::Tensor& tensor) { return c10::isReducedFloatingType(tensor.scalar_type()); }

/// Of dimensions with several elements.
bool same_strides(c10::IntArrayRef strides, const at::Tensor& tensor) {
  for (size_t dim = 0; dim < strides.size() && tensor.numel() > 0; ++dim)
    if (tensor.sizes()[dim] > 1 && strides[dim] != tensor.strides()[dim]) return false;
  return true;
}

/// Whether an operand on the mesh is expanded: results may lie as it does.
bool any_repeats(const Stack& arguments) {
  bool any = false;
  for_each_tensor(arguments, [&](const Slot&, const at::Tensor& tensor) { any |= repeats(tensor); });
  return any;
}

}  // namespace

Trial::Trial(const OpCase& op_case, const Rules& rules, bool strict)
    : op_case_(op_case),
      rules_(rules),
      numerics_(draw_numerics(op_case)),
      call_(draw_call(op_case, numerics_)),
      expected_(reference_if_any(op_case, call_, numerics_)),
      drawn_(numerics_.domain, rules, strict) {}

OpSharding Trial::sharding() const {
  auto declared = reference(op_case_, call_, {numerics_.dtype, numerics_.exact, Domain::kDeclared});
  for (size_t i = 0; i < call_.slots.size(); ++i)
    if (call_.writes(i)) {
      declared = {call_.tensor(i)};
      break;
    }
  return sharding_of(rule(), call_, declared);
}

std::string Trial::wrong(const std::vector<at::Tensor>& actual) const {
  if (actual.size() != expected_.size()) return "another number of results";
  for (size_t r = 0; r < actual.size(); ++r) {
    const auto what = difference(actual[r], expected_[r], numerics_, !op_case_.is(OpCase::kNoValues));
    if (!what.empty()) return fmt::format("result {} {}", r, what);
  }
  return {};
}

Trial::Verdict Trial::verdict(const Mesh& mesh, const std::vector<at::Tensor>& tensors) const {
  const MeshScope scope(mesh);  // decompositions make constants
  try {
    return {"", wrong(run(call_.op, with_tensors(call_, tensors)))};
  } catch (const BadInput& error) {
    return {error.what(), ""};
  } catch (const std::exception& error) {
    return {"", error.what()};
  }
}

void Trial::check(const std::vector<Verdict>& verdicts, const std::string& line) const {
  bool may_refuse = drawn_.options.policy.strict;
  for (size_t i = 0; i < call_.slots.size(); ++i) may_refuse |= call_.writes(i);
  // Of all first: who waits for a rank that lacks one says something else.
  for (const auto& verdict : verdicts)
    if (lacks_kernel(verdict.wrong, kFloat8) || negates_bools(verdict.wrong)) RC_DISCARD("no kernel");
  for (const auto& [refusal, wrong] : verdicts) {
    if (!wrong.empty()) RC_FAIL(fmt::format("{}: {}", line, wrong));
    if (!refusal.empty() && !may_refuse) RC_FAIL(fmt::format("{}: {}", line, refusal));
    if (refusal != verdicts.front().refusal) RC_FAIL(fmt::format("{}: not refused by all ranks: {}", line, refusal));
  }
  if (verdicts.front().refusal.empty()) ++compared_cases()[op_case_.op];
}

void Trial::expect(const std::vector<OperandForm>& forms, bool in_groups) const {
  const auto tensors = place_all(mesh(), call_, forms);
  const auto line = describe(call_, tensors, mesh(), numerics_) + text_of(forms);
  if (!in_groups || drawn_.is_part || drawn_.options.rank_count == 1) return check({verdict(mesh(), tensors)}, line);
  const auto verdicts = in_two_groups(drawn_.options, forms.size(), [&](World& world) -> Verdict {
    const auto& mesh = world.mesh(drawn_.axes);
    try {
      return verdict(mesh, place_all(mesh, call_, forms));
    } catch (const std::exception& error) {
      return {"", error.what()};
    }
  });
  check(verdicts, line + " in two groups");
}

bool Trial::rounds_partial(const ChosenLayouts& choice) const {
  const auto sharding = this->sharding();
  for (size_t i = 0; i < choice.operands.size(); ++i)
    if (sharding.linearity[i] == Linearity::kEach && !sharding.exact && choice.operands[i].any_partial() &&
        is_low_precision(call_.tensor(i)))
      return true;
  return false;
}

void Trial::check_plan(const Arranger& arranger, const std::vector<size_t>& chosen, const Stack& arguments,
                       const std::string& line) const {
  const auto plan =
      make_plan(mesh().world().part<RulesInUse>().get(), call_.op, arguments, mesh(), RunContext::current());
  if (plan->moves) RC_FAIL(line + ": operands in a candidate's layouts move");
  for (size_t r = 0; r < plan->results.size(); ++r) {
    if (!any_repeats(arguments) && !same_strides(plan->results[r]->strides, expected_[r]))
      RC_FAIL(
          c10::str(line, ": result ", r, " has strides ", plan->results[r]->strides, " for ", expected_[r].strides()));
    if (!arranger.predicts(chosen, r, plan->results[r]->layout))
      RC_FAIL(
          fmt::format("{}: result {} lies as {}, which no candidate says", line, r, plan->results[r]->layout.text()));
  }
}

void Trial::expect(const Arranger& arranger, const std::vector<size_t>& chosen,
                   const std::vector<OperandForm::Kind>& kinds) const {
  const auto choice = arranger.arrange(chosen, call_);
  if (!choice) return;
  std::vector<OperandForm> forms;
  for (size_t i = 0; i < kinds.size(); ++i)
    forms.push_back(form_in(choice->operands[i].placements(), call_.tensor(i), kinds[i]));
  const auto tensors = place_all(mesh(), call_, forms);
  const auto line = describe(call_, tensors, mesh(), numerics_) + text_of(forms);
  try {
    // Policy: a 16-bit product takes no Partial.
    if (!rounds_partial(*choice)) check_plan(arranger, chosen, with_tensors(call_, tensors), line);
  } catch (const lockstep::Error& error) {
    RC_FAIL(line + ": " + error.what());
  } catch (const c10::Error& error) {
    RC_FAIL(line + ": " + error.what_without_backtrace());
  }
  check({verdict(mesh(), tensors)}, line);
}

void Trial::expect_factory() const {
  const MeshScope scope(mesh());
  const auto line = describe(call_, {}, mesh(), numerics_);
  std::vector<at::Tensor> actual;
  try {
    actual = run(call_.op, on_mesh_device(call_));
  } catch (const std::exception& error) {
    RC_FAIL(line + ": " + error.what());
  }
  const auto what = wrong(actual);
  if (!what.empty()) RC_FAIL(line + ": " + what);
  ++compared_cases()[op_case_.op];
}

}  // namespace lockstep::testing
