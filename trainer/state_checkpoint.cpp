#include "trainer/state_checkpoint.h"

#include <ATen/Functions.h>

#include <cstring>

#include "core/error.h"
#include "runtime/sharded_tensor.h"
#include "runtime/world.h"

namespace lockstep::trainer {
namespace {

/// Of all ranks that hold one cut, the one with coordinate 0 on every axis that does not cut saves it.
bool saves(const Layout& layout, int rank) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (!layout[axis].is_shard() && layout.mesh().coordinate(rank, axis) != 0) return false;
  return true;
}

Box box_of(const TensorSpec& spec, size_t index) {
  Box box;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    box.offset.push_back(range.start);
    box.size.push_back(range.length);
  }
  return box;
}

template <class Visit>
void for_each_tensor_of(const TrainingState& state, const Visit& visit) {
  for (const auto& entry : state) {
    visit(entry.name, entry.value);
    visit("optimizer.mean." + entry.name, entry.mean);
    visit("optimizer.square." + entry.name, entry.square);
  }
}

}  // namespace

void save_state(const std::string& folder, const CheckpointMetadata& metadata, const TrainingState& state) {
  std::vector<ChunkToSave> chunks;
  std::vector<at::Tensor> kept;  // the bytes are borrowed until the save is over
  for_each_tensor_of(state, [&](const std::string& name, const at::Tensor& tensor) {
    const auto& spec = spec_of(tensor);
    const auto& mesh = spec.layout.mesh();
    for (size_t i = 0; i < mesh.local_count(); ++i) {
      const auto box = box_of(spec, i);
      if (!saves(spec.layout, mesh.local_ranks()[i]) || box.elements() == 0) continue;
      const auto& shard = kept.emplace_back(sharded(tensor).shards()->whole()[i].to(c10::kFloat).contiguous());
      chunks.push_back(
          {name, "F32", spec.sizes, box, {static_cast<const std::byte*>(shard.const_data_ptr()), shard.nbytes()}});
    }
  });
  save_checkpoint(folder, metadata, chunks);
}

CheckpointMetadata load_state(const std::string& folder, TrainingState& state) {
  const at::NoGradGuard no_grad;
  const Checkpoint checkpoint(folder);
  for_each_tensor_of(state, [&](const std::string& name, const at::Tensor& tensor) {
    const auto& spec = spec_of(tensor);
    const auto& record = checkpoint.tensor(name);
    if (record.shape != spec.sizes || record.dtype != "F32")
      fail<BadInput>("{}: {} is {} {}, the job's model has F32 {}", folder, name, record.dtype,
                     c10::str(c10::IntArrayRef(record.shape)), c10::str(c10::IntArrayRef(spec.sizes)));
    for (size_t i = 0; i < spec.local_sizes.size(); ++i) {
      const auto box = box_of(spec, i);
      if (box.elements() == 0) continue;
      const auto bytes = checkpoint.read(name, box);
      const auto plain = at::empty(spec.local_sizes[i], at::kFloat);
      LOCKSTEP_CHECK_EQ(bytes.size(), plain.nbytes());
      std::memcpy(plain.mutable_data_ptr(), bytes.data(), bytes.size());
      sharded(tensor).shards()->whole()[i].copy_(plain);
    }
  });
  return checkpoint.metadata();
}

}  // namespace lockstep::trainer
