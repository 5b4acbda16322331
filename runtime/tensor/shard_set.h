#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <exception>
#include <functional>
#include <memory>

#include "core/error.h"

namespace lockstep {

struct TensorSpec;

/// One tensor per rank of the mesh that lives in this process, in the order of Mesh::local_ranks().
using Shards = c10::SmallVector<at::Tensor, 4>;

/// The shards of the ranks that live in this process, shared by all sharded tensors that have the same bytes.
///
/// A set may be pending: a collective that completes on first use, in any order among sets. It may be evicted: freed,
/// and made again on first use (fully sharded parameters between forward and backward). Shards of a Partial are sums
/// in the accumulation dtype (domain.h), one entry per rank, and are no values of the tensor: read them as sums().
///
/// Of packed rows (spec.h) the set knows which are present.
///
/// The set of a view knows the set that it is a view of, so that all of a family (a tensor and the views of it) count
/// their writes in one place.
class ShardSet {
 public:
  ShardSet(Shards shards, bool partial) : shards_(std::move(shards)), partial_(partial) {}
  ShardSet(std::function<Shards()> pending, bool partial) : pending_(std::move(pending)), partial_(partial) {}

  /// The shards of a tensor without a Partial axis.
  const Shards& whole() {
    LOCKSTEP_CHECK(!partial_, "the shards of a Partial are not values");
    return local_tensors();
  }
  /// The unreduced sums of a Partial.
  const Shards& sums() {
    LOCKSTEP_CHECK(partial_, "not a Partial");
    return local_tensors();
  }
  /// For code that treats both alike, such as a linear op. Throws what completing the set threw, on every use.
  const Shards& local_tensors() {
    if (pending_) [[unlikely]]
      complete();
    return shards_;
  }

  /// Of packed rows: for each local rank the cells that have a row, bool [...] of the rank's cells. REQUIRES:
  /// is_packed().
  const Shards& present() const { return *present_; }
  bool is_packed() const { return present_ != nullptr; }
  void set_present(std::shared_ptr<const Shards> present) { present_ = std::move(present); }
  const std::shared_ptr<const Shards>& shared_present() const { return present_; }

  /// Frees the shards; `again` makes them on the next use.
  void evict(std::function<Shards()> again) {
    shards_.clear();
    pending_ = std::move(again);
  }
  bool is_pending() const { return static_cast<bool>(pending_); }
  bool is_partial() const { return partial_; }

  /// A set that several ranks share bytes in (gathered parameters); in-place ops on it are an error.
  void make_read_only() { read_only_ = true; }
  bool is_read_only() const { return read_only_; }

  /// Makes this a view of `base`: one family from now on.
  void make_view_of(const std::shared_ptr<ShardSet>& base) {
    base_ = base->base_ ? base->base_ : base;
    base_->has_views_ = true;
  }
  bool is_view() const { return static_cast<bool>(base_); }
  bool has_views() const { return has_views_; }
  /// How often a member of the family was written in place.
  uint64_t writes() const { return base_ ? base_->writes_ : writes_; }
  void count_write() { ++(base_ ? base_->writes_ : writes_); }

  /// What a Partial was reduced to once, if nothing of its family was written since; else null.
  std::shared_ptr<ShardSet> reduced_to(const TensorSpec* spec) const {
    return spec == reduced_spec_ && reduced_at_ == writes() ? reduced_ : nullptr;
  }
  void keep_reduced(const TensorSpec* spec, std::shared_ptr<ShardSet> shards) {
    reduced_spec_ = spec;
    reduced_ = std::move(shards);
    reduced_at_ = writes();
  }

 private:
  void complete();

  Shards shards_;
  std::function<Shards()> pending_;
  std::exception_ptr failure_;
  std::shared_ptr<const Shards> present_;
  std::shared_ptr<ShardSet> base_;  ///< of a view: the set of the tensor that the family began with
  const TensorSpec* reduced_spec_ = nullptr;
  std::shared_ptr<ShardSet> reduced_;
  uint64_t writes_ = 0, reduced_at_ = 0;
  bool partial_;
  bool read_only_ = false;
  bool has_views_ = false;
};

}  // namespace lockstep
