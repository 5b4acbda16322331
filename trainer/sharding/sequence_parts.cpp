#include "trainer/sharding/sequence_parts.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

constexpr int kLength = 2;

}  // namespace

SequenceParts::SequenceParts(const at::Tensor& like)
    : layout_(layout_of(like)), mesh_(&layout_.mesh()), length_(like.size(kLength)) {
  const auto cutters = layout_.cutters(kLength);
  if (cutters.size() != 1)
    fail<BadInput>("attention in a ring: {} mesh axes cut the sequences of {}, expected one", cutters.size(),
                   spec_of(like).text());
  axis_ = cutters[0];
  while (count_ < mesh_->axis_size(axis_) && positions(count_).length > 0) ++count_;
}

const Mesh& SequenceParts::mesh(int64_t part) const {
  return mesh_->submesh(mesh_->axes()[static_cast<size_t>(axis_)].name, part);
}

Range SequenceParts::positions(int64_t part) const {
  return layout_.cut(mesh_->member(mesh_->ranks()[0], axis_, part), kLength, length_);
}

const TensorSpec* SequenceParts::spec(const at::Tensor& whole, int64_t part, int64_t of) const {
  const auto& spec = spec_of(whole);
  auto placements = spec.layout.placements();
  if (placements[static_cast<size_t>(axis_)] != layout_[axis_])
    fail<BadInput>("attention in a ring: keys lie as {}, queries as {}", spec.layout.text(), layout_.text());
  placements.erase(placements.begin() + axis_);
  auto sizes = spec.sizes;
  sizes[kLength] = positions(of).length;
  return mesh(part).specs().intern(Layout(mesh(part), std::move(placements)), sizes, spec.dtype);
}

at::Tensor SequenceParts::of(const at::Tensor& whole, int64_t part) const {
  const PlainTensors guard;
  Shards shards;
  for (const int rank : mesh(part).local_ranks())
    shards.push_back(sharded(whole).shards()->whole()[static_cast<size_t>(mesh_->local_index(rank))].contiguous());
  return make_sharded(spec(whole, part, part), std::move(shards));
}

at::Tensor SequenceParts::joined(const std::vector<at::Tensor>& parts, const TensorSpec* spec) const {
  const PlainTensors guard;
  Shards shards;
  for (size_t i = 0; i < mesh_->local_count(); ++i) {
    const int rank = mesh_->local_ranks()[i];
    const auto part = static_cast<size_t>(mesh_->coordinate(rank, axis_));
    if (part >= static_cast<size_t>(count_)) {
      shards.push_back(
          at::empty(spec->local_sizes[i], at::dtype(storage(*spec)).device(mesh_->world().shard_device())));
      continue;
    }
    const auto& mesh = layout_of(parts[part]).mesh();
    shards.push_back(sharded(parts[part]).shards()->whole()[static_cast<size_t>(mesh.local_index(rank))].contiguous());
    LOCKSTEP_CHECK(shards.back().sizes() == c10::IntArrayRef(spec->local_sizes[i]), "part {} of {} is {}", part,
                   spec->text(), spec_of(parts[part]).text());
  }
  return make_sharded(spec, std::move(shards));
}

}  // namespace lockstep::trainer
