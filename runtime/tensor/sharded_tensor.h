#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <memory>

#include "runtime/shard_set.h"
#include "runtime/spec.h"

namespace lockstep {

/// A tensor with the *global* sizes, strides and dtype, whose values lie on the ranks of a mesh (device type `mesh`,
/// PrivateUse1). Below autograd, so that LibTorch's derivative formulas, modules, optimizers and hooks work on it.
class ShardedTensorImpl final : public c10::TensorImpl {
 public:
  ShardedTensorImpl(const TensorSpec* spec, std::shared_ptr<ShardSet> shards);

  const TensorSpec& spec() const { return *spec_; }
  const std::shared_ptr<ShardSet>& shards() const { return shards_; }

  /// Replaces layout and shards by an equal tensor's, for example once a Partial has been reduced for one reader.
  void become(const TensorSpec* spec, std::shared_ptr<ShardSet> shards);

  /// A view that no view of the shards can express is a copy: reads are right until base or view is written.
  void mark_detached_view();
  bool is_detached_view() const { return detached_view_; }
  /// Throws BadInput if base or view were written since.
  void check_fresh();

  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(const c10::VariableVersion& version,
                                                              bool allow_metadata_change) const override;
  c10::intrusive_ptr<c10::TensorImpl> shallow_copy_and_detach(c10::VariableVersion&& version,
                                                              bool allow_metadata_change) const override;
  void shallow_copy_from(const c10::intrusive_ptr<c10::TensorImpl>& other) override;
  const char* tensorimpl_type_name() const override { return "ShardedTensorImpl"; }

 private:
  void set_geometry();
  template <class Version>
  c10::intrusive_ptr<c10::TensorImpl> copy(Version&& version, bool allow_metadata_change) const;

  const TensorSpec* spec_;
  std::shared_ptr<ShardSet> shards_;
  bool detached_view_ = false;
  uint32_t version_at_creation_ = 0;
};

inline bool is_sharded(const at::TensorBase& tensor) {
  return tensor.defined() && tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::PrivateUse1);
}

/// REQUIRES: is_sharded(tensor).
inline ShardedTensorImpl& sharded(const at::TensorBase& tensor) {
  return *static_cast<ShardedTensorImpl*>(tensor.unsafeGetTensorImpl());
}

inline const TensorSpec& spec_of(const at::TensorBase& tensor) { return sharded(tensor).spec(); }
inline const Layout& layout_of(const at::TensorBase& tensor) { return spec_of(tensor).layout; }

/// A new tensor around shards; their sizes and stored dtype must be the spec's.
at::Tensor make_sharded(const TensorSpec* spec, Shards shards);
at::Tensor make_sharded(const TensorSpec* spec, std::shared_ptr<ShardSet> shards);

/// Cuts a plain CPU tensor, equal on every process, into a sharded tensor. No communication. A Partial axis gives the
/// value to its first rank and the reduction's neutral element to the others. Values are copied.
at::Tensor distribute(const at::Tensor& plain, const Layout& layout);

/// A sharded tensor around one plain tensor per local rank of the mesh. Throws BadInput if sizes or dtype do not fit.
at::Tensor from_shards(Shards shards, const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype);

/// `tensor` in another dtype. Unfinished sums stay as they are and unfinished, in the wider dtype of the two, so that
/// they are rounded once; one with rounded levels is finished.
at::Tensor declared_as(const at::Tensor& tensor, c10::ScalarType dtype);

/// The whole tensor as a plain one in its stored dtype (a copy). Communicates, but is not counted as traffic.
/// Throws BadInput where no rank of the tensor's mesh lives.
at::Tensor gather(const at::Tensor& tensor);

}  // namespace lockstep
