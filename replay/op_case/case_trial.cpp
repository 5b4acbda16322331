#include "replay/op_case/case_trial.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "core/mesh_text.h"
#include "replay/op_case/case_arguments.h"
#include "replay/op_case/case_values.h"
#include "replay/op_case/expected_results.h"
#include "replay/op_case/move_case.h"
#include "runtime/context/scopes.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

/// Which of two names a field of the case has.
bool is_first(const std::string& text, const char* first, const char* second, const char* field) {
  if (text != first && text != second)
    fail<BadInput>("{} of the case is {}; expected {} or {}", field, text, first, second);
  return text == first;
}

}  // namespace

World::Options options_of_case(const OpCase& one, std::shared_ptr<const RuleSet> rules) {
  World::Options options;
  const auto ranks = rank_count(parse_mesh_axes(one.mesh));
  if (static_cast<size_t>(ranks) > one.tensors.size())  // a sharded operand has one for each rank
    fail<BadInput>("the case is of mesh {} and holds {} tensors; expected one at least for each of {} ranks", one.mesh,
                   one.tensors.size(), ranks);
  options.rank_count = static_cast<int>(ranks);
  const bool is_double = is_first(one.domain, to_text(Domain::kFloat64), to_text(Domain::kDeclared), "domain");
  options.domain = is_double ? Domain::kFloat64 : Domain::kDeclared;
  const bool canonical = is_first(one.numerics, to_text(Numerics::kCanonical), to_text(Numerics::kNative), "numerics");
  options.numerics = canonical ? Numerics::kCanonical : Numerics::kNative;
  if (!canonical && one.rounded_levels != 0)
    fail<BadInput>("rounded_levels of the case is {}, which is of canonical numerics alone", one.rounded_levels);
  options.rounded_levels = one.rounded_levels;
  options.rules = std::move(rules);
  return options;
}

/// No other op is run, whatever LibTorch has: some of them open files.
c10::OperatorHandle op_of_case(const OpCase& one, World& world) {
  const auto op = c10::Dispatcher::singleton().findSchema({one.op, one.overload});
  if (!op) fail<BadInput>("there is no op {}.{} here", one.op, one.overload);
  if (!world.part<RulesInUse>().get().find(op_name(*op)))
    fail<BadInput>("{} has no rule, and only ops that have one are run (lockstep rules lists them)", one.op);
  return *op;
}

std::vector<c10::IValue> arguments_of_case(const OpCase& one, const c10::FunctionSchema& schema, const Mesh& mesh) {
  const auto json = nlohmann::ordered_json::parse(one.arguments);
  auto arguments = arguments_from_json(json, schema, mesh, one.tensors);
  schema.checkAndNormalizeInputs(arguments);
  require_enumerations(schema, arguments);
  bool has_sharded = false;
  for_each_tensor(arguments, [&](Slot, const at::Tensor& tensor) { has_sharded |= is_sharded(tensor); });
  if (!has_sharded) fail<BadInput>("none of the operands of {} in the case is sharded", one.op);
  return arguments;
}

namespace {

std::optional<Blame> try_op(const OpCase& one, const Mesh& mesh) {
  auto& world = mesh.world();
  const auto op = op_of_case(one, world);
  ExpectedResults check(one, op.operator_name(), world);
  auto arguments = arguments_of_case(one, op.schema(), mesh);
  {
    const ObserverScope watching(world.observers(), check);
    op.callBoxed(arguments);
  }
  return check.result();
}

}  // namespace

std::optional<Blame> try_case(const OpCase& one, std::shared_ptr<const RuleSet> rules) {
  const at::NoGradGuard no_grad;
  World world(options_of_case(one, std::move(rules)));
  const auto& mesh = world.mesh(one.mesh);
  const MeshScope scope(mesh);
  try {
    return is_move(one) ? try_move(one, mesh) : try_op(one, mesh);
  } catch (const nlohmann::json::exception& error) {
    fail<BadInput>("the arguments of the case: {}", error.what());
  } catch (const c10::Error& error) {
    fail<BadInput>("{} does not take the arguments of the case: {}", one.op, error.what_without_backtrace());
  }
}

}  // namespace lockstep::replay
