#include "trainer/step/training_state.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include "core/error.h"
#include "rng/stream.h"
#include "rng/subarray.h"
#include "runtime/context/random.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transfer/whole_mesh.h"
#include "trainer/gradients/shard_axes.h"

namespace lockstep::trainer {
namespace {

/// Rows of a part that lie in a shard; `shard` is cut to them.
void draw_rows(at::Tensor shard, const models::Division& division, size_t part, const models::PartRows& rows,
               std::vector<int64_t> starts, uint64_t seed) {
  const auto& [name, unused, initial] = division.parts()[part];
  if (initial.is_constant) {
    shard.fill_(initial.constant);
    return;
  }
  if (!starts.empty()) starts[0] = rows.part_row;
  fill_random(shard, initial.distribution, seed, rng::stream_of({0, name, 0}),
              rng::Subarray::of(division.sizes_of(part), {starts, shard.sizes().vec()}));
}

at::Tensor draw_shard(const TensorSpec& spec, size_t index, const models::Division& division, uint64_t seed) {
  const auto device = spec.layout.mesh().world().shard_device();
  auto shard = at::empty(spec.local_sizes[index], at::dtype(at::kFloat).device(device));
  std::vector<int64_t> starts;
  for (int dim = 0; dim < spec.dim_count(); ++dim) starts.push_back(spec.cut(index, dim).start);
  const auto held = starts.empty() ? Range{0, 1} : spec.cut(index, 0);
  for (size_t part = 0; part < division.parts().size(); ++part)
    for (const auto& rows : division.rows_of(part, held.start, held.length))
      draw_rows(starts.empty() ? shard : shard.narrow(0, rows.row - held.start, rows.count), division, part, rows,
                starts, seed);
  return shard;
}

at::Tensor initial_value(const models::Parameter& parameter, const Layout& layout, uint64_t seed) {
  const PlainTensors guard;
  const auto& mesh = layout.mesh();
  const auto* spec = mesh.specs().intern(layout, parameter.sizes(), c10::kFloat);
  const auto dtype = stored(mesh.world().domain(), c10::kFloat);
  Shards shards;
  for (size_t i = 0; i < mesh.local_count(); ++i)
    shards.push_back(mesh.world().meta() ? at::empty(spec->local_sizes[i], at::dtype(dtype).device(c10::kMeta))
                                         : draw_shard(*spec, i, parameter.division(), seed).to(dtype));
  return make_sharded(spec, std::move(shards));
}

/// With the part of its value that is updated here.
ParameterState as_updated(const ParameterState& entry, bool replicas_share) {
  auto part = entry;
  const auto layout = update_layout(layout_of(entry.value), spec_of(entry.value).sizes, replicas_share);
  part.value = redistribute_values(entry.value, layout, "redistribute");
  return part;
}

}  // namespace

ParameterState description_of(const models::Parameter& parameter, const ParameterSettings& settings) {
  return {parameter.name(), {}, parameter.trainable(), {}, parameter.division(), settings, parameter.is_adapter()};
}

TrainingState initial_state(models::Model& model, const Stages& stages, const Optimizer& optimizer,
                            const std::vector<ParameterSettings>& settings, const Job& job) {
  const PhaseScope phase(Phase::kInit);
  const auto seed = static_cast<uint64_t>(job.debug.seed);
  const auto parameters = model.parameters();
  LOCKSTEP_CHECK_EQ(parameters.size(), settings.size());
  TrainingState state;
  for (size_t p = 0; p < parameters.size(); ++p) {
    auto& entry = state.emplace_back(description_of(*parameters[p], settings[p]));
    entry.value = initial_value(*parameters[p], stages.plan_of(*parameters[p]).stored(*parameters[p]), seed);
    if (entry.trainable)
      entry.slots =
          new_slots(optimizer, as_updated(entry, job.parallelism.shard_optimizer_state), job.optimizer.offload_state);
    entry.value.requires_grad_(entry.trainable);
    parameters[p]->assign(entry.value);
  }
  return state;
}

void follow_values(TrainingState& state) {
  const PhaseScope phase(Phase::kInit);
  const at::NoGradGuard no_grad;
  for (auto& entry : state)
    for (auto& slot : entry.slots)
      if (slot.follows_value) slot.tensor.copy_(entry.value);
}

void copy_state(const TrainingState& source, TrainingState& target) {
  const at::NoGradGuard no_grad;
  LOCKSTEP_CHECK_EQ(source.size(), target.size());
  for (size_t p = 0; p < source.size(); ++p) {
    LOCKSTEP_CHECK_EQ(source[p].name, target[p].name);
    const auto from = source[p].tensors(), to = target[p].tensors();
    LOCKSTEP_CHECK_EQ(from.size(), to.size(), "{}", source[p].name);
    for (size_t t = 0; t < from.size(); ++t) {
      LOCKSTEP_CHECK_EQ(from[t].prefix, to[t].prefix, "{}", source[p].name);
      at::Tensor(to[t].tensor).copy_(gather_everywhere(from[t].tensor));
    }
  }
}

}  // namespace lockstep::trainer
