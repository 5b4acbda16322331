#include "runtime/redistribution/gather.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/traffic.h"
#include "runtime/context/world.h"
#include "runtime/deferred/range_checks.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

void require_local_rank(const TensorSpec& spec) {
  if (spec.layout.mesh().local_count() > 0) return;
  fail<BadInput>("the value of {} on mesh {} was asked for in a process that has none of the mesh's ranks", spec.text(),
                 spec.layout.mesh().text());
}

/// Where it lies: a shard or a tensor of its own.
at::Tensor whole_value(const at::Tensor& tensor) {
  auto& self = sharded(tensor);
  self.bring_up_to_date();
  const auto& spec = self.spec();
  require_local_rank(spec);
  auto& world = spec.layout.mesh().world();
  name_communication(world, "gather");
  if (spec.all_replicate && !spec.is_packed()) return self.shards()->whole()[0].detach();
  auto& traffic = world.traffic();
  const Traffic before = traffic;
  const auto* target = with_layout(spec, Layout::replicated(spec.layout.mesh()));
  const auto set = spec.all_replicate ? self.shards() : moved(spec, *self.shards(), *target, "gather");
  traffic = before;
  const auto& whole = set->whole()[0];
  return spec.is_packed() ? unpacked(whole, set->present()[0]) : whole;
}

/// What the host sees of a GPU's values it may see only after their checks.
void settle_checks(const at::Tensor& tensor) { layout_of(tensor).mesh().world().part<RangeChecks>().settle(); }

}  // namespace

at::Tensor gather(const at::Tensor& tensor) {
  const PlainTensors guard;
  const auto value = whole_value(tensor);
  settle_checks(tensor);
  return value.is_cuda() ? value.cpu() : value.clone();
}

std::vector<at::Tensor> gather_numbers(const std::vector<at::Tensor>& tensors) {
  const PlainTensors guard;
  if (tensors.empty()) return {};
  std::vector<at::Tensor> values;
  for (const auto& tensor : tensors) values.push_back(whole_value(tensor));
  settle_checks(tensors[0]);
  return at::stack(values).cpu().unbind();
}

}  // namespace lockstep
