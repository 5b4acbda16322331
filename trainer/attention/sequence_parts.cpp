#include "trainer/attention/sequence_parts.h"

#include <ATen/Functions.h>

#include "core/digest/digest.h"
#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

constexpr int kLength = 2;

}  // namespace

SequenceParts::SequenceParts(const TensorSpec& like)
    : layout_(like.layout), mesh_(&layout_.mesh()), length_(like.sizes[kLength]) {
  const auto cutters = layout_.cutters(kLength);
  if (cutters.size() != 1)
    fail<BadInput>("attention: {} mesh axes cut the sequences of {}, expected one", cutters.size(), like.text());
  axis_ = cutters[0];
  while (count_ < mesh_->axis_size(axis_) && positions(count_).length > 0) ++count_;
}

const Mesh& SequenceParts::mesh(int64_t part) const {
  return mesh_->submesh(mesh_->axes()[static_cast<size_t>(axis_)].name, part);
}

Range SequenceParts::positions(int64_t part) const {
  return layout_.cut(mesh_->member(mesh_->ranks()[0], axis_, part), kLength, length_);
}

/// Without the axis that cuts sequences.
const TensorSpec* SequenceParts::spec_there(const TensorSpec& whole, int64_t part, std::vector<int64_t> sizes) const {
  auto placements = whole.layout.placements();
  placements.erase(placements.begin() + axis_);
  return mesh(part).specs().intern(Layout(mesh(part), std::move(placements)), sizes, whole.dtype);
}

const TensorSpec* SequenceParts::spec(const TensorSpec& whole, int64_t part, int64_t rows) const {
  if (whole.layout[axis_] != layout_[axis_])
    fail<BadInput>("attention: keys lie as {}, queries as {}", whole.layout.text(), layout_.text());
  auto sizes = whole.sizes;
  sizes[kLength] = rows;
  return spec_there(whole, part, std::move(sizes));
}

at::Tensor SequenceParts::shards_of(const at::Tensor& whole, int64_t part, const TensorSpec* spec) const {
  const PlainTensors guard;
  Shards shards;
  for (const int rank : mesh(part).local_ranks())
    shards.push_back(sharded(whole).shards()->whole()[static_cast<size_t>(mesh_->local_index(rank))].contiguous());
  return make_sharded(spec, std::move(shards));
}

at::Tensor SequenceParts::of(const at::Tensor& whole, int64_t part) const {
  return shards_of(whole, part, spec(spec_of(whole), part, positions(part).length));
}

std::vector<at::Tensor> SequenceParts::each(const at::Tensor& whole) const {
  std::vector<at::Tensor> all(static_cast<size_t>(count()));
  for (int64_t part = 0; part < count(); ++part)
    if (is_here(part)) all[static_cast<size_t>(part)] = of(whole, part);
  return all;
}

at::Tensor SequenceParts::gathered(const at::Tensor& whole, int64_t part) const {
  return shards_of(whole, part, spec_there(spec_of(whole), part, spec_of(whole).sizes));
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

at::Tensor finished(const at::Tensor& x) {
  auto placements = layout_of(x).placements();
  for (auto& placement : placements)
    if (placement.is_partial()) placement = Placement::replicate();
  auto result = redistribute(x, Layout(layout_of(x).mesh(), std::move(placements)));
  sharded(result).shards()->whole();
  return result;
}

at::Tensor beside_query(const at::Tensor& places, const at::Tensor& query) {
  if (!places.defined()) return {};
  auto placements = layout_of(query).placements();
  for (auto& placement : placements)
    if (placement.is_shard() && placement.dim == 1) placement = Placement::replicate();
  const Layout layout(layout_of(query).mesh(), std::move(placements));
  return redistribute_values(places.unsqueeze(1), layout, "redistribute");
}

uint64_t attention_number() {
  const auto& context = RunContext::current();
  return digest(fmt::format("{} {} {}", context.microbatch(), static_cast<int>(context.phase()), context.module())).low;
}

const TensorSpec* spec_like(const TensorSpec& like, int64_t size, c10::ScalarType dtype) {
  auto sizes = like.sizes;
  sizes.pop_back();
  if (size >= 0) sizes.push_back(size);
  return like.layout.mesh().specs().intern(like.layout, sizes, dtype);
}

}  // namespace lockstep::trainer
