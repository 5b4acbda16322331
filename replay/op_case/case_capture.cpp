#include "replay/op_case/case_capture.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include "core/error.h"
#include "replay/capture/recorded_tensor.h"
#include "replay/op_case/case_arguments.h"
#include "runtime/context/world.h"
#include "runtime/planning/make_plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

/// Of the first sharded operand, in a list or by itself.
const Mesh* mesh_of(std::span<const c10::IValue> arguments) {
  for (const auto& argument : arguments) {
    if (argument.isTensor() && is_sharded(argument.toTensor())) return &layout_of(argument.toTensor()).mesh();
    if (!argument.isList()) continue;
    const auto elements = argument.toListRef();
    if (const auto* mesh = mesh_of({elements.begin(), elements.end()})) return mesh;
  }
  return nullptr;
}

}  // namespace

void CaseCapture::before_op(const OpEvent& event) {
  if (case_ || event.id.text() != id_) return;
  try {
    const auto* mesh = mesh_of(event.arguments);
    if (!mesh || &mesh->whole() != mesh) fail<BadInput>("its operands lie on no whole mesh");
    for_each_tensor(event.arguments, [](const Slot&, const at::Tensor& tensor) {
      if (is_sharded(tensor) && spec_of(tensor).is_packed())
        fail<BadInput>("it takes packed rows, which op cases do not hold");
    });
    const auto& world = mesh->world();
    const auto& name = event.op.operator_name();
    OpCase one;
    one.id = id_, one.op = name.name, one.overload = name.overload_name, one.mesh = mesh->text();
    one.numerics = to_text(world.numerics()), one.domain = to_text(world.domain());
    one.rounded_levels = world.rounded_levels();
    one.arguments = arguments_to_json(event.arguments, *mesh, one.tensors).dump();
    case_ = std::move(one);
  } catch (const BadInput& error) {
    why_not_ = error.what();
  }
}

std::optional<OpCase> CaseCapture::take(const std::string& finding, const std::vector<at::Tensor>& expected) {
  if (!case_) return std::nullopt;
  case_->finding = finding;
  for (size_t k = 0; k < expected.size(); ++k)
    case_->tensors.push_back(recorded_tensor(fmt::format("expected.{}", k), expected[k]));
  return std::exchange(case_, std::nullopt);
}

}  // namespace lockstep::replay
