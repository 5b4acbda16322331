#include "replay/play/operand_statistics.h"

#include <ATen/Functions.h>

#include "runtime/planning/plan.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::replay {
namespace {

std::string statistics(const at::Tensor& shard) {
  if (shard.numel() == 0) return "no elements";
  const auto values = shard.to(c10::kDouble);
  const auto finite = values.isfinite();
  const int64_t strange = values.numel() - finite.sum().item<int64_t>();
  const auto kept = values.masked_select(finite);
  if (kept.numel() == 0) return fmt::format("none of {} elements is finite", values.numel());
  return fmt::format("{:.6g} to {:.6g}, mean {:.6g}{}", kept.min().item<double>(), kept.max().item<double>(),
                     kept.mean().item<double>(), strange ? fmt::format(", {} not finite", strange) : "");
}

}  // namespace

std::string operand_statistics(const OpEvent& event, size_t index) {
  std::string lines;
  const auto& arguments = event.op.schema().arguments();
  for (size_t a = 0; a < arguments.size(); ++a) {
    const auto& value = event.arguments[a];
    const auto* alias = arguments[a].alias_info();
    if (!value.isTensor() || !is_sharded(value.toTensor()) || (alias && alias->isWrite())) continue;
    auto& self = sharded(value.toTensor());
    if (self.shards()->is_pending()) continue;
    lines += fmt::format("{}    {:<12} {}: {}", lines.empty() ? "" : "\n", arguments[a].name(), self.spec().text(),
                         statistics(self.shards()->local_tensors()[index]));
  }
  return lines;
}

}  // namespace lockstep::replay
