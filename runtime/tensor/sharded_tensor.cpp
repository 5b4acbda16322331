#include "runtime/tensor/sharded_tensor.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/plain/pinned.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/ranks.h"
#include "runtime/tensor/reduce.h"

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

void ShardedTensorImpl::detach_view(std::shared_ptr<DetachedView> view) {
  view_ = std::move(view);
  seen_writes_ = shards_->writes();
}

void ShardedTensorImpl::make_anew() {
  view_->make_anew(*this);
  seen_writes_ = shards_->writes();
}

void ShardedTensorImpl::written() {
  if (view_) view_->write_back(*this);
  shards_->count_write();
  seen_writes_ = shards_->writes();
}

template <class Version>
c10::intrusive_ptr<c10::TensorImpl> ShardedTensorImpl::copy(Version&& version, bool allow_metadata_change) const {
  auto result = c10::make_intrusive<ShardedTensorImpl>(spec_, shards_);
  copy_tensor_metadata(this, result.get(), std::forward<Version>(version), allow_metadata_change);
  result->set_geometry();
  result->view_ = view_;
  result->seen_writes_ = seen_writes_;
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
  view_ = source.view_;
  seen_writes_ = source.seen_writes_;
}

at::Tensor make_sharded(const TensorSpec* spec, std::shared_ptr<ShardSet> shards) {
  return at::detail::make_tensor<ShardedTensorImpl>(spec, std::move(shards));
}

at::Tensor make_sharded(const TensorSpec* spec, Shards shards) {
  return make_sharded(spec, std::make_shared<ShardSet>(std::move(shards), spec->any_partial));
}

namespace {

bool is_first_of_partials(const Layout& layout, int rank) {
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (layout[axis].is_partial() && layout.mesh().coordinate(rank, axis) != 0) return false;
  return true;
}

/// A GPU is not waited for where little is copied, as tokens are: it fetches that from pinned memory in its time.
void copy_into(const at::Tensor& shard, const at::Tensor& piece) {
  constexpr size_t kMostPinned = size_t{1} << 20;
  const size_t bytes = static_cast<size_t>(piece.numel()) * shard.element_size();
  if (!shard.is_cuda() || !piece.is_cpu() || bytes == 0 || bytes > kMostPinned) {
    shard.copy_(piece);
    return;
  }
  shard.copy_(pinned_tensor(piece.sizes(), shard.scalar_type()).copy_(piece), /*non_blocking=*/true);
}

/// Fills a rank's shard so that all ranks' combine to `piece`, which is theirs of the value: the first rank of every
/// Partial axis has it (of an ordered sum its first node), the others the neutral element.
void fill_shard(at::Tensor& shard, const at::Tensor& piece, const Layout& layout, int rank) {
  if (layout.ordered_sum()) {
    shard.zero_();
    if (shard.size(0) > 0 && is_first_of_partials(layout, rank)) copy_into(shard.select(0, 0), piece);
    return;
  }
  copy_into(shard, piece);
  for (int axis = 0; axis < layout.axis_count(); ++axis)
    if (layout[axis].is_partial() && layout.mesh().coordinate(rank, axis) != 0)
      fill_with_neutral(shard, layout[axis].reduction);
}

}  // namespace

at::Tensor cut_out(const TensorSpec& spec, const at::Tensor& plain, size_t index) {
  at::Tensor piece = plain;
  for (int dim = 0; dim < spec.dim_count(); ++dim) {
    const auto range = spec.cut(index, dim);
    piece = piece.narrow(dim, range.start, range.length);
  }
  return piece;
}

at::Tensor distribute(const at::Tensor& plain, const Layout& layout) {
  const PlainTensors guard;
  const auto* spec = layout.mesh().specs().intern(layout, plain.sizes(), plain.scalar_type());
  const auto dtype = storage(*spec);
  Shards shards;
  for (size_t i = 0; i < layout.mesh().local_count(); ++i) {
    auto shard = at::empty(spec->local_sizes[i], at::TensorOptions().dtype(dtype).device(layout.mesh().all().device()));
    fill_shard(shard, cut_out(*spec, plain.detach(), i), layout, layout.mesh().local_ranks()[i]);
    shards.push_back(std::move(shard));
  }
  return make_sharded(spec, std::move(shards));
}

at::Tensor from_shards(Shards shards, const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype) {
  const auto* spec = layout.mesh().specs().intern(layout, sizes, dtype);
  const auto wanted = storage(*spec);
  if (shards.size() != layout.mesh().local_count())
    fail<BadInput>("from_shards: {} shards for {} local ranks", shards.size(), layout.mesh().local_count());
  for (size_t i = 0; i < shards.size(); ++i)
    if (shards[i].sizes() != c10::IntArrayRef(spec->local_sizes[i]) || shards[i].scalar_type() != wanted)
      fail<BadInput>("from_shards: shard {} of {} has sizes {} and dtype {}, expected {} and {}", i, spec->text(),
                     c10::str(shards[i].sizes()), c10::toString(shards[i].scalar_type()),
                     c10::str(c10::IntArrayRef(spec->local_sizes[i])), c10::toString(wanted));
  for (auto& shard : shards) shard = shard.to(layout.mesh().all().device());
  return make_sharded(spec, std::move(shards));
}

at::Tensor declared_as(const at::Tensor& tensor, c10::ScalarType dtype) {
  const auto& spec = spec_of(tensor);
  if (spec.dtype == dtype) return tensor;
  const auto* sum = spec.layout.ordered_sum();
  if (!spec.any_partial || (sum && sum->rounded_levels > 0)) return tensor.to(dtype);
  const PlainTensors guard;
  const auto* wanted = spec.layout.mesh().specs().intern(spec.layout, spec.sizes, dtype, spec.packing);
  Shards sums;
  for (const auto& shard : sharded(tensor).shards()->sums()) sums.push_back(shard.to(storage(*wanted)));
  auto set = std::make_shared<ShardSet>(std::move(sums), wanted->any_partial);
  set->set_present(sharded(tensor).shards()->shared_present());
  return make_sharded(wanted, std::move(set));
}

}  // namespace lockstep
