#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <memory>

#include "runtime/tensor/shard_set.h"
#include "runtime/tensor/spec.h"

namespace lockstep {

class ShardedTensorImpl;

/// How a view that no view of the shards can express follows from its base, and the base from it
/// (dispatch/detached_view.h).
class DetachedView {
 public:
  virtual ~DetachedView() = default;
  /// Gives `view` the layout and shards that the view has now.
  virtual void make_anew(ShardedTensorImpl& view) const = 0;
  /// Throws BadInput if write_back() cannot be done: to be asked before anything is written.
  virtual void check_writable() const = 0;
  /// Writes the values of `view` into the base.
  virtual void write_back(ShardedTensorImpl& view) const = 0;
};

/// A tensor with the *global* sizes, strides and dtype, whose values lie on the ranks of a mesh (device type `mesh`,
/// PrivateUse1). Below autograd, so that LibTorch's derivative formulas, modules, optimizers and hooks work on it.
class ShardedTensorImpl final : public c10::TensorImpl {
 public:
  ShardedTensorImpl(const TensorSpec* spec, std::shared_ptr<ShardSet> shards);

  const TensorSpec& spec() const { return *spec_; }
  const std::shared_ptr<ShardSet>& shards() const { return shards_; }

  /// Replaces layout and shards by an equal tensor's, for example once a Partial has been reduced for one reader.
  void become(const TensorSpec* spec, std::shared_ptr<ShardSet> shards);

  /// Makes this a view that no view of the shards can express: its shards are a copy, made anew after a write to
  /// another member of the family, and written back when it is written itself.
  void detach_view(std::shared_ptr<DetachedView> view);
  bool is_detached_view() const { return static_cast<bool>(view_); }
  /// Makes a detached view's shards anew if another member of its family was written since.
  void bring_up_to_date() {
    if (view_ && seen_writes_ != shards_->writes()) [[unlikely]]
      make_anew();
  }
  /// To be called before every write in place. Throws BadInput if this is a view whose base cannot be written.
  void check_writable() const {
    if (view_) view_->check_writable();
  }
  /// To be called after every write in place: counts it, and hands it on to what this is a view of.
  void written();

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
  void make_anew();

  std::shared_ptr<DetachedView> view_;
  uint64_t seen_writes_ = 0;  ///< of the family, when the shards were last the view's
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

/// What local rank `index` has of a tensor whose whole is `plain`; a view of it.
at::Tensor cut_out(const TensorSpec& spec, const at::Tensor& plain, size_t index);

/// Cuts a plain CPU tensor, equal on every process, into a sharded tensor. No communication. A Partial axis gives the
/// value to its first rank and the reduction's neutral element to the others. Values are copied.
at::Tensor distribute(const at::Tensor& plain, const Layout& layout);

/// A sharded tensor around one plain tensor per local rank of the mesh. Throws BadInput if sizes or dtype do not fit.
at::Tensor from_shards(Shards shards, const Layout& layout, c10::IntArrayRef sizes, c10::ScalarType dtype);

/// `tensor` in another dtype. Unfinished sums stay as they are and unfinished, in the wider dtype of the two, so that
/// they are rounded once; one with rounded levels is finished.
at::Tensor declared_as(const at::Tensor& tensor, c10::ScalarType dtype);

}  // namespace lockstep
