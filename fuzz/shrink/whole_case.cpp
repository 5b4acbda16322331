#include "fuzz/shrink/whole_case.h"

#include <ATen/Functions.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/mesh_text.h"
#include "fuzz/calls/sharded_calls.h"
#include "replay/capture/recorded_tensor.h"
#include "replay/op_case/case_arguments.h"
#include "replay/op_case/case_trial.h"
#include "replay/op_case/move_case.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/gather.h"

namespace lockstep::fuzz {
namespace {

using replay::OpCase;

at::Tensor placed(const WholeCase& whole, const WholeCase::Operand& operand, const Mesh& mesh) {
  const Layout layout(mesh, operand.placements);
  return whole.spread ? testing::scatter(whole.value(operand), layout) : distribute(whole.value(operand), layout);
}

torch::jit::Stack cut_arguments(const WholeCase& whole, const Mesh& mesh) {
  auto arguments = whole.arguments;
  for (const auto& operand : whole.operands) set_slot(arguments, operand.slot, placed(whole, operand, mesh));
  if (whole.target) arguments[1] = Layout(mesh, *whole.target).text();
  return arguments;
}

/// Of the op on a mesh of one rank.
std::vector<at::Tensor> one_device(const WholeCase& whole, World::Options options) {
  options.rank_count = 1, options.rules = {};
  World world(std::move(options));
  const auto& mesh = world.mesh("one=1");
  const MeshScope scope(mesh);
  auto arguments = whole.arguments;
  for (const auto& operand : whole.operands)
    set_slot(arguments, operand.slot, distribute(whole.value(operand), Layout::replicated(mesh)));
  std::vector<at::Tensor> results;
  for (const auto& result : testing::run(replay::op_of_case(whole.origin, world), std::move(arguments)))
    results.push_back(gather(result));
  return results;
}

/// The numerics of the case that it comes from, the ranks of its own mesh.
World::Options options_of(const WholeCase& whole) {
  OpCase one = whole.origin;
  one.mesh = "one=1", one.tensors.resize(1);
  auto options = replay::options_of_case(one, {});
  options.rank_count = static_cast<int>(rank_count(whole.axes));
  return options;
}

}  // namespace

at::Tensor WholeCase::value(const Operand& operand) const {
  const auto& argument = arguments[static_cast<size_t>(operand.slot.argument)];
  return operand.slot.element < 0 ? argument.toTensor()
                                  : argument.toTensorVector()[static_cast<size_t>(operand.slot.element)];
}

WholeCase whole_case(const OpCase& one) {
  const at::NoGradGuard no_grad;
  World world(replay::options_of_case(one, {}));
  const auto& mesh = world.mesh(one.mesh);
  WholeCase whole{.origin = one, .axes = parse_mesh_axes(one.mesh)};
  if (replay::is_move(one)) {
    whole.arguments = replay::arguments_of_move(one, mesh);
    whole.target = Layout::parse(mesh, whole.arguments[1].toStringRef()).placements();
  } else {
    whole.arguments = replay::arguments_of_case(one, replay::op_of_case(one, world).schema(), mesh);
  }
  auto arguments = whole.arguments;
  for_each_tensor(arguments, [&](const Slot& slot, const at::Tensor& tensor) {
    if (!is_sharded(tensor)) return;
    whole.operands.push_back({slot, layout_of(tensor).placements()});
    set_slot(whole.arguments, slot, gather(tensor).to(tensor.scalar_type()));
  });
  return whole;
}

OpCase cut_case(const WholeCase& whole) {
  const at::NoGradGuard no_grad;
  World world(options_of(whole));
  const auto& mesh = world.mesh(whole.axes);
  auto one = whole.origin;
  one.mesh = mesh.text();
  one.tensors.clear();
  one.arguments = replay::arguments_to_json(cut_arguments(whole, mesh), mesh, one.tensors).dump();
  if (whole.target) return one;
  const auto expected = one_device(whole, options_of(whole));
  for (size_t k = 0; k < expected.size(); ++k)
    one.tensors.push_back(replay::recorded_tensor(fmt::format("expected.{}", k), expected[k]));
  return one;
}

std::optional<Blame> blame_of(const WholeCase& whole, const Rules& rules) {
  try {
    return replay::try_case(cut_case(whole), rules);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::string describe(const WholeCase& whole) {
  World world(options_of(whole));
  const auto& mesh = world.mesh(whole.axes);
  std::string text = whole.origin.op;
  for (size_t i = 0; i < whole.operands.size(); ++i) {
    const auto value = whole.value(whole.operands[i]);
    text += fmt::format("{}{} {}", i ? ", " : "(", c10::str(value.scalar_type(), value.sizes()),
                        Layout(mesh, whole.operands[i].placements).text());
  }
  if (whole.target) text += " -> " + Layout(mesh, *whole.target).text();
  return fmt::format("{}) on {}", text, mesh.text());
}

}  // namespace lockstep::fuzz
