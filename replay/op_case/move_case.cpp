#include "replay/op_case/move_case.h"

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>

#include "consistency/blame_observer.h"
#include "consistency/op_trace.h"
#include "consistency/ops/op_check.h"
#include "core/error.h"
#include "replay/op_case/case_arguments.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

constexpr auto kMove = "move";

c10::FunctionSchema schema() {
  return {kMove, "", {{"value", c10::TensorType::get()}, {"layout", c10::StringType::get()}}, {}};
}

/// What differs while `run` moves something. In double by the tolerance of that domain, else as mode ops compares.
std::optional<Blame> blame_in(World& world, const std::function<void()>& run) {
  if (world.domain() == Domain::kFloat64) {
    const OpTrace nothing(kFloat64Tolerance);
    BlameObserver watch(nothing, kFloat64Tolerance);
    const ObserverScope scope(world.observers(), watch);
    run();
    return watch.blame();
  }
  OpCheck watch(world, /*sample=*/1);
  const ObserverScope scope(world.observers(), watch);
  run();
  if (watch.counts().compared_moves == 0) fail<BadInput>("nothing moves in the case: there is nothing to compare");
  return watch.blame();
}

}  // namespace

bool is_move(const OpCase& one) { return one.op == kMove && one.overload.empty(); }

std::optional<OpCase> case_of_move(const MovedValue& moved, const std::string& id, const std::string& finding) {
  const auto& mesh = moved.before->layout.mesh();
  if (&mesh.whole() != &mesh || moved.before->is_packed()) return std::nullopt;
  const auto& world = mesh.world();
  OpCase one;
  one.id = id, one.op = kMove, one.mesh = mesh.text(), one.finding = finding;
  one.numerics = to_text(world.numerics()), one.domain = to_text(world.domain());
  one.rounded_levels = world.rounded_levels();
  const auto value = from_shards(moved.shards, moved.before->layout, moved.before->sizes, moved.before->dtype);
  const std::vector<c10::IValue> arguments{value, moved.after->layout.text()};
  one.arguments = arguments_to_json(arguments, mesh, one.tensors).dump();
  return one;
}

std::vector<c10::IValue> arguments_of_move(const OpCase& one, const Mesh& mesh) {
  auto arguments = arguments_from_json(nlohmann::ordered_json::parse(one.arguments), schema(), mesh, one.tensors);
  schema().checkAndNormalizeInputs(arguments);
  const auto value = arguments[0].toTensor();
  if (!value.defined() || !is_sharded(value)) fail<BadInput>("what moves in the case is not sharded");
  return arguments;
}

std::optional<Blame> try_move(const OpCase& one, const Mesh& mesh) {
  const auto arguments = arguments_of_move(one, mesh);
  const auto value = arguments[0].toTensor();
  if (value.numel() == 0) fail<BadInput>("what moves in the case has no element: there is nothing to compare");
  const auto after = Layout::parse(mesh, arguments[1].toStringRef());
  if (after == layout_of(value)) fail<BadInput>("what moves in the case stays in its layout {}", after.text());
  auto blame = blame_in(mesh.world(), [&] { redistribute_values(value, after, kMove); });
  if (blame) blame->id = one.id, blame->before.clear();  // nothing else was compared
  return blame;
}

}  // namespace lockstep::replay
