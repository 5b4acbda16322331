#include "consistency/traced_op.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "consistency/bounds/error_bounds.h"
#include "core/digest/tensor_digest.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/plain/tensor_bytes.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

bool is_readable(const at::Tensor& tensor) { return !is_sharded(tensor) || !sharded(tensor).shards()->is_pending(); }

/// Whether an op writes all of its first operand, whatever was there.
bool overwrites(std::string_view op) {
  constexpr std::string_view kOps[] = {"fill_",   "zero_",   "copy_",      "uniform_",    "normal_",     "bernoulli_",
                                       "random_", "cauchy_", "geometric_", "log_normal_", "exponential_"};
  return std::ranges::find(kOps, op.substr(0, op.find('.'))) != std::end(kOps);
}

bool same_double(double left, double right, double tolerance) {
  if (tolerance < 0) return std::bit_cast<uint64_t>(left) == std::bit_cast<uint64_t>(right);
  return std::equal_to<>()(left, right) ||
         std::abs(left - right) <= tolerance * std::max(std::abs(left), std::abs(right)) ||
         (std::isnan(left) && std::isnan(right));
}

}  // namespace

namespace {

std::vector<Operand> operands_where(std::span<const c10::IValue> arguments, bool readable) {
  std::vector<Operand> operands;
  for_each_tensor(arguments, [&](const Slot& slot, const at::Tensor& tensor) {
    if (tensor.defined() && is_readable(tensor) == readable) operands.push_back({slot.argument, slot.element, tensor});
  });
  return operands;
}

}  // namespace

std::vector<Operand> operands_of(std::span<const c10::IValue> arguments) { return operands_where(arguments, true); }

std::vector<Operand> operands_read_by(const OpEvent& event) {
  auto operands = operands_of(event.arguments);
  if (overwrites(event.id.op)) std::erase_if(operands, [](const Operand& operand) { return operand.argument == 0; });
  return operands;
}

std::vector<Operand> awaited_operands_of(std::span<const c10::IValue> arguments) {
  return operands_where(arguments, false);
}

std::vector<Operand> arrived(const OpEvent& event, const std::vector<Operand>& awaited) {
  if (event.plan.written >= 0) return {};  // it may have been written since
  auto operands = operands_of(event.arguments);
  std::erase_if(operands, [&](const Operand& operand) {
    return std::ranges::none_of(awaited, [&](const Operand& other) { return operand.tensor.is_same(other.tensor); });
  });
  return operands;
}

bool is_unwritten(const OpEvent& event) { return is_unwritten(event.plan.rule); }

std::vector<OpResult> readable_results(const OpEvent& event, std::span<const c10::IValue> results) {
  if (is_unwritten(event)) return {};
  auto all = op_results(event, results);
  std::erase_if(all, [](const OpResult& result) { return !is_readable(result.tensor); });
  return all;
}

std::vector<at::Tensor> computed_results(const OpEvent& event, std::span<const c10::IValue> results) {
  std::vector<at::Tensor> tensors;
  for (auto& result : readable_results(event, results))
    if (!result.is_alias) tensors.push_back(std::move(result.tensor));
  return tensors;
}

at::Tensor whole_value(const at::Tensor& tensor) {
  if (is_sharded(tensor)) return whole_of(all_shards(local_shards(tensor)));
  const PlainTensors guard;
  return tensor.detach().cpu().clone();
}

Digest digest_of(const at::Tensor& whole) {
  const PlainTensors guard;
  return tensor_digest(bytes_of(whole.contiguous()));
}

c10::IValue number_of(const c10::IValue& argument) {
  const bool is_number = argument.isInt() || argument.isDouble() || argument.isBool() || argument.isIntList() ||
                         argument.isDoubleList() || argument.isBoolList();
  return is_number ? argument : c10::IValue();
}

bool same_numbers(const c10::IValue& left, const c10::IValue& right, double tolerance) {
  if (left.isDouble() && right.isDouble()) return same_double(left.toDouble(), right.toDouble(), tolerance);
  if (left.isDoubleList() && right.isDoubleList()) {
    const auto a = left.toDoubleVector(), b = right.toDoubleVector();
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](double x, double y) { return same_double(x, y, tolerance); });
  }
  return left == right;
}

}  // namespace lockstep
