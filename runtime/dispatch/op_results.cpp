#include "runtime/dispatch/op_results.h"

#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

void add(std::vector<OpResult>& all, const c10::IValue& value, bool is_alias) {
  const auto take = [&](const at::Tensor& tensor) {
    if (is_sharded(tensor)) all.push_back({tensor, is_alias});
  };
  if (value.isTensor()) return take(value.toTensor());
  if (!value.isTensorList()) return;
  for (const at::Tensor& tensor : value.toTensorVector()) take(tensor);
}

}  // namespace

std::vector<OpResult> op_results(const OpEvent& event, std::span<const c10::IValue> results) {
  const auto& schema = event.op.schema();
  std::vector<OpResult> all;
  for (size_t a = 0; event.plan.written >= 0 && a < schema.arguments().size(); ++a) {
    const auto* alias = schema.arguments()[a].alias_info();
    if (alias && alias->isWrite()) add(all, event.arguments[a], false);
  }
  if (event.plan.written >= 0) return all;
  for (size_t r = 0; r < results.size(); ++r)
    add(all, results[r], r < schema.returns().size() && schema.returns()[r].alias_info());
  return all;
}

}  // namespace lockstep
