#include "trainer/mutation/trials/forward_outputs.h"

#include <fmt/format.h>

#include "consistency/difference.h"
#include "consistency/traced_op.h"

namespace lockstep::trainer {
namespace {

bool differs(const std::map<std::string, at::Tensor>& values, const std::map<std::string, at::Tensor>& right,
             const std::string& key, double tolerance) {
  const auto mine = values.find(key), theirs = right.find(key);
  if (mine == values.end() || theirs == right.end()) return false;
  return !difference_of(mine->second, theirs->second, tolerance).agrees();
}

}  // namespace

void ForwardOutputs::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (event.id.phase != Phase::kForward) return;
  for (const auto& tensor : computed_results(event, results)) {
    if (!tensor.is_floating_point()) continue;
    by_module_[fmt::format("{} {} {}", event.id.step, event.id.microbatch, event.id.module)] = whole_value(tensor);
  }
}

bool ForwardOutputs::module_differs(const ForwardOutputs& right, double tolerance) const {
  for (const auto& [key, value] : by_module_)
    if (differs(by_module_, right.by_module_, key, tolerance)) return true;
  return false;
}

}  // namespace lockstep::trainer
