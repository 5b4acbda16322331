#include "trainer/step/updated_parts.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>

#include "core/state_ops.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/gradients/bucketed_reductions.h"

namespace lockstep::trainer {
namespace {

/// Parameters of one mesh whose parts travel together.
struct Bucket {
  std::vector<std::string> names;
  std::vector<at::Tensor> values, parts;
  int64_t bytes = 0;

  void give_back() {
    std::vector<Layout> layouts;
    for (const auto& value : values) layouts.push_back(layout_of(value));
    const ModuleScope module(names[0]);  // stages count by themselves: one's ranks replay alone
    const CommunicationScope scope(layouts[0].mesh().world(), kGatherUpdated);
    const auto gathered = redistribute_bucket(parts, layouts);
    for (size_t i = 0; i < values.size(); ++i) {
      const ModuleScope each(names[i]);
      values[i].copy_(gathered[i]);
    }
    *this = {};
  }
};

bool any_is_shared(const TrainingState& state, const std::vector<at::Tensor>& gradients) {
  size_t next = 0;
  for (const auto& entry : state)
    if (entry.trainable && layout_of(gradients[next++]) != layout_of(entry.value)) return true;
  return false;
}

}  // namespace

UpdatedParts::UpdatedParts(const TrainingState& state, const std::vector<at::Tensor>& gradients) : whole_(state) {
  if (!any_is_shared(state, gradients)) return;
  const PhaseScope phase(Phase::kOptimizer);
  const at::NoGradGuard no_grad;
  parts_ = state;
  size_t next = 0;
  for (auto& entry : parts_) {
    if (!entry.trainable) continue;
    const ModuleScope scope(entry.name);
    const auto& layout = layout_of(gradients[next++]);
    if (layout != layout_of(entry.value)) entry.value = redistribute_values(entry.value, layout, kShareUpdate);
  }
}

void UpdatedParts::give_back(int64_t bucket_bytes) {
  const PhaseScope phase(Phase::kReduce);  // ops that only some meshes have
  std::map<const Mesh*, Bucket> buckets;
  std::vector<const Mesh*> meshes;  // in the order of the parameters, on all ranks alike
  for (size_t p = 0; p < parts_.size(); ++p) {
    const auto &part = parts_[p].value, &value = whole_[p].value;
    if (!parts_[p].trainable || layout_of(part) == layout_of(value)) continue;
    const auto* mesh = &layout_of(value).mesh();
    if (mesh->local_count() == 0) continue;  // another stage's, in other processes
    auto& bucket = buckets[mesh];
    if (bucket.parts.empty()) meshes.push_back(mesh);
    bucket.names.push_back(parts_[p].name), bucket.values.push_back(value), bucket.parts.push_back(part);
    if ((bucket.bytes += bytes_of_part(part, layout_of(part))) >= std::max<int64_t>(bucket_bytes, 1))
      bucket.give_back();
  }
  for (const auto* mesh : meshes)
    if (auto& bucket = buckets[mesh]; !bucket.parts.empty()) bucket.give_back();
  parts_.clear();
}

}  // namespace lockstep::trainer
