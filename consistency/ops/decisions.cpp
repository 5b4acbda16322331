#include "consistency/ops/decisions.h"

#include <algorithm>

#include "consistency/traced_op.h"
#include "runtime/plain/plain_tensors.h"

namespace lockstep {

void Decisions::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto is_float = [](const Operand& operand) { return operand.tensor.is_floating_point(); };
  if (std::ranges::none_of(operands_of(event.arguments), is_float)) return;
  for (const auto& result : computed_results(event, results))
    if (result.scalar_type() == c10::kLong) values_[event.id.text()] = whole_value(result);
}

std::string Decisions::first_other(const Decisions& other) const {
  const PlainTensors guard;
  for (const auto& [id, value] : values_)
    if (const auto found = other.values_.find(id); found != other.values_.end() && !value.equal(found->second))
      return id;
  return "";
}

}  // namespace lockstep
