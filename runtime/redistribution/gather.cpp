#include "runtime/redistribution/gather.h"

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/traffic.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/packed_rows.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// A tensor of its own on the CPU (or without values).
at::Tensor plain_copy(const at::Tensor& shard) { return shard.is_cuda() ? shard.cpu() : shard.clone(); }

void require_local_rank(const TensorSpec& spec) {
  if (spec.layout.mesh().local_count() > 0) return;
  fail<BadInput>("the value of {} on mesh {} was asked for in a process that has none of the mesh's ranks", spec.text(),
                 spec.layout.mesh().text());
}

}  // namespace

at::Tensor gather(const at::Tensor& tensor) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.bring_up_to_date();
  const auto& spec = self.spec();
  require_local_rank(spec);
  auto& world = spec.layout.mesh().world();
  name_communication(world, "gather");
  if (spec.all_replicate && !spec.is_packed()) return plain_copy(self.shards()->whole()[0].detach());
  auto& traffic = world.traffic();
  const Traffic before = traffic;
  const auto* target = with_layout(spec, Layout::replicated(spec.layout.mesh()));
  const auto set = spec.all_replicate ? self.shards() : moved(spec, *self.shards(), *target, "gather");
  traffic = before;
  const auto& whole = set->whole()[0];
  return plain_copy(spec.is_packed() ? unpacked(whole, set->present()[0]) : whole);
}

}  // namespace lockstep
