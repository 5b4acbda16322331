// The properties of the op table's rows.
#include "fuzz/trials/rule_properties.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <cstdlib>
#include <sstream>

#include "fuzz/calls/operand_forms.h"
#include "fuzz/trials/rule_trial.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
void candidates_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const Trial trial(op_case, rules);
  if (op_case.is(OpCase::kFactory)) return trial.expect_factory();
  const OpSharding sharding = trial.sharding();
  const Arranger arranger(trial.mesh(), sharding);
  const auto base = arranger.draw_choice();
  std::vector<OperandForm::Kind> kinds;
  for (const auto& plain : tensors_of(trial.call()))
    kinds.push_back(draw_unmoved_kind(plain, op_case.is(OpCase::kDense)));
  for (size_t axis = 0; axis < base.size(); ++axis)
    for (size_t candidate = 0; candidate < arranger.all().size(); ++candidate) {
      auto chosen = base;
      chosen[axis] = candidate;
      trial.expect(arranger, chosen, kinds);
    }
}

void random_layouts_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const Trial trial(op_case, rules, *rc::gen::inRange(0, 5) == 4);
  if (op_case.is(OpCase::kFactory)) return trial.expect_factory();
  trial.expect(draw_forms(op_case, trial.call(), trial.mesh(), true), *rc::gen::inRange(0, 8) == 7);
}

int case_count(int few) { return std::getenv("LOCKSTEP_SOAK") ? 50 * few : few; }

std::map<std::string, int64_t>& compared_cases() {
  static std::map<std::string, int64_t> cases;
  return cases;
}

std::string failure_of(const std::string& id, int cases, const std::function<void()>& property, bool shrink) {
  namespace detail = rc::detail;
  auto params = detail::configuration().testParams;
  params.maxSuccess = cases;
  params.disableShrinking |= !shrink;
  detail::TestListenerAdapter silent;
  const auto result =
      detail::checkTestable(property, detail::TestMetadata{id, id}, params, silent, detail::configuration().reproduce);
  if (result.is<detail::SuccessResult>()) return {};
  std::ostringstream text;
  if (!result.is<detail::FailureResult>()) {
    printResultMessage(result, text);
    return text.str();
  }
  const auto& failure = result.get<detail::FailureResult>();
  detail::Configuration again;
  again.reproduce[id] = failure.reproduce;
  text << failure.description << "\nRC_PARAMS=\"" << configToMinimalString(again) << "\"\n";
  return text.str();
}

bool refused_by_canonical(const std::string& op) {
  const auto* rule = built_in_rules(lockstep::Numerics::kCanonical)->find(op);
  return rule && rule->canonical == Rule::Canonical::kRefuses;
}

std::string failure_of_counted(const std::string& id, const std::string& op, int cases,
                               const std::function<void()>& property, bool all_refused) {
  const auto before = compared_cases()[op];
  auto failure = failure_of(id, cases, property);
  if (!failure.empty()) return failure;
  const auto compared = compared_cases()[op] - before;
  if (all_refused) return compared == 0 ? "" : fmt::format("{}: {} calls ran, and all should be refused", id, compared);
  if (4 * compared >= cases) return {};
  return fmt::format("{}: only {} of {} cases were compared; the rest was refused or left out", id, compared, cases);
}

}  // namespace lockstep::testing
