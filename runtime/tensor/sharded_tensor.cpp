#include "runtime/sharded_tensor.h"

#include <ATen/Functions.h>

#include "runtime/redistribute.h"
#include "runtime/world.h"

namespace lockstep {

ShardedTensorImpl::ShardedTensorImpl(const TensorSpec* spec, std::shared_ptr<ShardSet> shards)
    : TensorImpl(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(spec->dtype),
                 c10::Device(c10::kPrivateUse1, 0)),
      spec_(spec),
      shards_(std::move(shards)) {
  set_storage_access_should_throw();
  set_geometry();
}

void ShardedTensorImpl::set_geometry() {
  sizes_and_strides_.set_sizes(spec_->sizes);
  for (size_t dim = 0; dim < spec_->strides.size(); ++dim)
    sizes_and_strides_.stride_at_unchecked(dim) = spec_->strides[dim];
  data_type_ = c10::scalarTypeToTypeMeta(spec_->dtype);
  refresh_numel();
  refresh_contiguous();
}

void ShardedTensorImpl::become(const TensorSpec* spec, std::shared_ptr<ShardSet> shards) {
  spec_ = spec;
  shards_ = std::move(shards);
  set_geometry();
}

void ShardedTensorImpl::mark_detached_view() {
  detached_view_ = true;
  version_at_creation_ = is_inference() ? 0 : version_counter().current_version();
}

void ShardedTensorImpl::check_fresh() {
  if (!detached_view_ || is_inference() || version_counter().current_version() == version_at_creation_) return;
  fail<BadInput>(
      "a view of a sharded tensor ({}) was read after its base or the view itself was written in place; no view of the "
      "shards can express it, so it is a copy. Clone it before the write, or redistribute the base first",
      spec_->text());
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> ShardedTensorImpl::copy(Version&& version, bool allow_metadata_change) const {
  auto result = c10::make_intrusive<ShardedTensorImpl>(spec_, shards_);
  copy_tensor_metadata(this, result.get(), std::forward<Version>(version), allow_metadata_change);
  result->set_geometry();
  result->detached_view_ = detached_view_;
  result->version_at_creation_ = version_at_creation_;
  return result;
}

c10::intrusive_ptr<c10::TensorImpl> ShardedTensorImpl::shallow_copy_and_detach(const c10::VariableVersion& version,
                                                                               bool allow_metadata_change) const {
  return copy(version, allow_metadata_change);
}

c10::intrusive_ptr<c10::TensorImpl> ShardedTensorImpl::shallow_copy_and_detach(c10::VariableVersion&& version,
                                                                               bool allow_metadata_change) const {
  return copy(std::move(version), allow_metadata_change);
}

void ShardedTensorImpl::shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& other) {
  if (!other->key_set().has(c10::DispatchKey::PrivateUse1))
    fail<BadInput>("set_data of a sharded tensor from a plain one; distribute() it first");
  const auto& source = static_cast<const ShardedTensorImpl&>(*other);
  copy_tensor_metadata(&source, this, version_counter(), allow_tensor_metadata_change());
  become(source.spec_, source.shards_);
}

at::Tensor make_sharded(const TensorSpec* spec, std::shared_ptr<ShardSet> shards) {
  return at::detail::make_tensor<ShardedTensorImpl>(spec, std::move(shards));
}

at::Tensor make_sharded(const TensorSpec* spec, Shards shards) {
  return make_sharded(spec, std::make_shared<ShardSet>(std::move(shards), spec->any_partial));
}

namespace {

/// Every rank but the first of a Partial axis holds the neutral element.
void split_value(at::Tensor& shard, const Layout& layout, int rank) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (layout[axis].is_partial() && layout.mesh().coordinate(rank, axis) != 0)
      fill_with_neutral(shard, layout[axis].reduction);
}

/// A tensor of its own on the CPU (or without values).
at::Tensor plain_copy(const at::Tensor& shard) { return shard.is_cuda() ? shard.cpu() : shard.clone(); }

at::Tensor cut_out(const TensorSpec& spec, const at::Tensor& plain, size_t index) {
  at::Tensor piece = plain;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    piece = piece.narrow(dim, range.start, range.length);
  }
  return piece;
}

void require_local_rank(const TensorSpec& spec) {
  if (spec.layout.mesh().local_count() > 0) return;
  fail<BadInput>("the value of {} on mesh {} was asked for in a process that has none of the mesh's ranks", spec.text(),
                 spec.layout.mesh().text());
}

}  // namespace

at::Tensor distribute(const at::Tensor& plain, const Layout& layout) {
  const PlainTensors guard;
  const auto* spec = layout.mesh().specs().intern(layout, plain.sizes(), plain.scalar_type());
  const auto& world = layout.mesh().world();
  const auto dtype = storage(*spec);
  Shards shards;
  for (size_t i = 0; i < layout.mesh().local_count(); ++i) {
    auto shard = at::empty(spec->local_sizes[i], at::TensorOptions().dtype(dtype).device(world.shard_device()));
    shard.copy_(cut_out(*spec, plain.detach(), i));
    split_value(shard, layout, layout.mesh().local_ranks()[i]);
    shards.push_back(std::move(shard));
  }
  return make_sharded(spec, std::move(shards));
}

at::Tensor from_shards(Shards shards, const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype) {
  const auto* spec = layout.mesh().specs().intern(layout, sizes, dtype);
  const auto& world = layout.mesh().world();
  const auto wanted = storage(*spec);
  if (shards.size() != layout.mesh().local_count())
    fail<BadInput>("from_shards: {} shards for {} local ranks", shards.size(), layout.mesh().local_count());
  for (size_t i = 0; i < shards.size(); ++i)
    if (shards[i].sizes() != c10::IntArrayRef(spec->local_sizes[i]) || shards[i].scalar_type() != wanted)
      fail<BadInput>("from_shards: shard {} of {} has sizes {} and dtype {}, expected {} and {}", i, spec->text(),
                     c10::str(shards[i].sizes()), c10::toString(shards[i].scalar_type()),
                     c10::str(c10::IntArrayRef(spec->local_sizes[i])), c10::toString(wanted));
  for (auto& shard : shards) shard = shard.to(world.shard_device());
  return make_sharded(spec, std::move(shards));
}

at::Tensor declared_as(const at::Tensor& tensor, c10::ScalarType dtype) {
  const auto& spec = spec_of(tensor);
  if (spec.dtype == dtype) return tensor;
  const auto* sum = spec.layout.ordered_sum();
  if (!spec.any_partial || (sum && sum->rounded_levels > 0)) return tensor.to(dtype);
  const PlainTensors guard;
  const auto* wanted = spec.layout.mesh().specs().intern(spec.layout, spec.sizes, dtype);
  Shards sums;
  for (const auto& shard : sharded(tensor).shards()->sums()) sums.push_back(shard.to(storage(*wanted)));
  return make_sharded(wanted, std::make_shared<ShardSet>(std::move(sums), wanted->any_partial));
}

at::Tensor gather(const at::Tensor& tensor) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.check_fresh();
  const auto& spec = self.spec();
  require_local_rank(spec);
  if (spec.all_replicate) return plain_copy(self.shards()->whole()[0].detach());
  auto& traffic = spec.layout.mesh().world().traffic();
  const Traffic before = traffic;
  const auto* target = with_layout(spec, Layout::replicated(spec.layout.mesh()));
  auto result = plain_copy(move_shards(spec, self.shards()->either(), *target, "gather")[0]);
  traffic = before;
  return result;
}

}  // namespace lockstep
