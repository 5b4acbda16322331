// The properties of the op table's rows.
#include "fuzz/trials/rule_properties.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include <cstdlib>
#include <sstream>

#include "core/error.h"
#include "fuzz/cases/drawn.h"
#include "fuzz/cases/tensors.h"
#include "fuzz/trials/rule_trial.h"
#include "runtime/planning/rules/built_in_rules.h"

namespace lockstep::testing {
namespace {

/// With strides of a transposed tensor.
at::Tensor scatter_turned(const Mesh& mesh, const at::Tensor& plain) {
  const auto other = plain.transpose(0, -1).contiguous();
  return scatter(other, draw_layout(mesh, other)).transpose(0, -1);
}

/// Every second element of what lies in memory, from the second on; those between are others.
at::Tensor scatter_with_gaps(const Mesh& mesh, const at::Tensor& plain) {
  const Layout layout = draw_layout(mesh, plain);
  return scatter(at::stack({at::ones_like(plain), plain}, -1), layout).select(-1, 1);
}

at::Tensor scatter_anyhow(const Mesh& mesh, const at::Tensor& plain, bool dense) {
  const auto kind = dense ? 0 : drawn(*rc::gen::inRange(0, 8));
  if (kind == 7) return scatter_with_gaps(mesh, plain);
  if (kind >= 5 && plain.dim() >= 2) return scatter_turned(mesh, plain);
  return scatter(plain, draw_layout(mesh, plain));
}

/// The second of two operands may stay plain if it has no dimensions.
std::vector<at::Tensor> scatter_anyhow(const OpCase& op_case, const OpCall& call, const Mesh& mesh) {
  std::vector<at::Tensor> tensors;
  for (size_t i = 0; i < call.slots.size(); ++i) {
    const auto plain = call.tensor(i);
    const bool may_stay =
        i == 1 && call.slots.size() == 2 && plain.dim() == 0 && call.slots[i].element < 0 && !call.writes(i);
    const bool stays = may_stay && *rc::gen::arbitrary<bool>();
    tensors.push_back(stays ? plain : scatter_anyhow(mesh, plain, op_case.is(OpCase::kDense)));
  }
  return tensors;
}

}  // namespace

void candidates_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const Trial trial(op_case, rules);
  if (op_case.is(OpCase::kFactory)) return trial.expect_factory();
  const OpSharding sharding = trial.sharding();
  const Arranger arranger(trial.mesh(), sharding);
  const auto base = arranger.draw_choice();
  for (size_t axis = 0; axis < base.size(); ++axis)
    for (size_t candidate = 0; candidate < arranger.all().size(); ++candidate) {
      auto chosen = base;
      chosen[axis] = candidate;
      trial.expect(arranger, chosen);
    }
}

void random_layouts_equal_one_device(const OpCase& op_case, const Rules& rules) {
  const Trial trial(op_case, rules, *rc::gen::inRange(0, 5) == 4);
  if (op_case.is(OpCase::kFactory)) return trial.expect_factory();
  trial.expect(scatter_anyhow(op_case, trial.call(), trial.mesh()));
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
