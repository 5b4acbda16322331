#include "consistency/ops/one_device.h"

#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "consistency/held_shards.h"
#include "runtime/context/scopes.h"
#include "runtime/dispatch/dispatch.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/make_plan.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

World::Options options_like(const World& run, Domain domain) {
  World::Options options;
  options.numerics = run.numerics();
  options.rounded_levels = run.rounded_levels();
  options.domain = domain;
  return options;
}

}  // namespace

OneDevice::OneDevice(const World& run, Domain domain)
    : world_(options_like(run, domain)), mesh_(world_.mesh("one_device=1")) {}

std::vector<ShardedOperand> sharded_operands(std::span<const c10::IValue> arguments) {
  std::vector<ShardedOperand> operands;
  for_each_tensor(arguments, [&](const Slot& slot, const at::Tensor& tensor) {
    if (is_sharded(tensor)) operands.push_back({slot, tensor});
  });
  return operands;
}

/// With the same rows. A collective, as all_shards() is.
at::Tensor OneDevice::placed_rows(const at::Tensor& operand, const at::Tensor& whole) const {
  const auto* cells = spec_of_cells(spec_of(operand));
  const auto present = whole_of(all_shards(local_shards(*cells, sharded(operand).shards()->present())));
  return distribute_rows(whole, present, Layout::replicated(mesh_), spec_of(operand).dtype);
}

/// Of the dtype that the operand declares.
at::Tensor OneDevice::placed(const at::Tensor& operand, const at::Tensor& whole) const {
  const auto& spec = spec_of(operand);
  if (spec.is_packed()) return placed_rows(operand, whole);
  const auto* here = mesh_.specs().intern(Layout::replicated(mesh_), spec.sizes, spec.dtype);
  return make_sharded(here, Shards{whole.to(storage(*here), /*non_blocking=*/false, /*copy=*/true)});
}

std::vector<at::Tensor> OneDevice::run(const OpEvent& event, const std::vector<at::Tensor>& operands) {
  const PlainTensors guard;
  const RunContext::RepeatedDraws draws(RunContext::current());
  const MeshScope here(mesh_);
  std::vector<c10::IValue> arguments(event.arguments.begin(), event.arguments.end());
  size_t next = 0;
  for (const auto& [slot, tensor] : sharded_operands(event.arguments))
    set_slot(arguments, slot, placed(tensor, operands.at(next++)));
  torch::jit::Stack stack = arguments;
  dispatch_within_op(event.op, stack);
  std::vector<at::Tensor> wholes;
  for (const auto& result : op_results({event.id, event.op, arguments, event.plan}, stack))
    wholes.push_back(whole_of(local_shards(result.tensor)));
  return wholes;
}

}  // namespace lockstep
