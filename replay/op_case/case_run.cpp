#include "replay/op_case/case_run.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include "consistency/comparison.h"
#include "core/error.h"
#include "core/mesh_text.h"
#include "replay/op_case/case_arguments.h"
#include "runtime/context/scopes.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

/// Compares the first op of a name with what it should give.
class ResultCheck final : public Observer {
 public:
  ResultCheck(const OpCase& one, const c10::OperatorName& op) : id_(one.id), op_(op) {
    for (size_t k = 0;; ++k) {
      const auto name = fmt::format("expected.{}", k);
      const auto found =
          std::find_if(one.tensors.begin(), one.tensors.end(), [&](const auto& tensor) { return tensor.name == name; });
      if (found == one.tensors.end()) break;
      expected_.push_back(plain_tensor(*found));
    }
    tolerance_ = one.domain == to_text(Domain::kFloat64) ? kFloat64Tolerance : 0;
  }

  void after_op(const OpEvent& event, std::span<const c10::IValue> results) override {
    if (came_ || event.op.operator_name() != op_) return;
    came_ = true;
    blame_ = compare_op(event, results, expected_, tolerance_);
    if (blame_) blame_->id = id_;
  }

  std::optional<Blame> result() const {
    if (!came_) fail<BadInput>("{} is no op that runs on shards", op_.name);
    return blame_;
  }

 private:
  std::string id_;
  c10::OperatorName op_;
  std::vector<at::Tensor> expected_;
  double tolerance_ = 0;
  bool came_ = false;
  std::optional<Blame> blame_;
};

World::Options options_of(const OpCase& one, std::shared_ptr<const RuleSet> rules) {
  World::Options options;
  options.rank_count = static_cast<int>(rank_count(parse_mesh_axes(one.mesh)));
  options.domain = one.domain == to_text(Domain::kFloat64) ? Domain::kFloat64 : Domain::kDeclared;
  options.numerics = one.numerics == to_text(Numerics::kCanonical) ? Numerics::kCanonical : Numerics::kNative;
  options.rounded_levels = one.rounded_levels;
  options.rules = std::move(rules);
  return options;
}

}  // namespace

std::optional<Blame> run_case(const OpCase& one, std::shared_ptr<const RuleSet> rules) {
  const at::NoGradGuard no_grad;
  World world(options_of(one, std::move(rules)));
  const auto& mesh = world.mesh(one.mesh);
  const MeshScope scope(mesh);
  const c10::OperatorName name(one.op, one.overload);
  const auto op = c10::Dispatcher::singleton().findSchema(name);
  if (!op) fail<BadInput>("there is no op {}.{} here", one.op, one.overload);
  ResultCheck check(one, name);
  try {
    const auto json = nlohmann::ordered_json::parse(one.arguments);
    auto arguments = arguments_from_json(json, op->schema(), mesh, one.tensors);
    op->schema().checkAndNormalizeInputs(arguments);
    const ObserverScope watching(world.observers(), check);
    op->callBoxed(arguments);
  } catch (const nlohmann::json::exception& error) {
    fail<BadInput>("the arguments of the case: {}", error.what());
  } catch (const c10::Error& error) {
    fail<BadInput>("{} does not take the arguments of the case: {}", one.op, error.what_without_backtrace());
  }
  return check.result();
}

}  // namespace lockstep::replay
