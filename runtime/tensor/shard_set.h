#pragma once
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <functional>

#include "core/error.h"

namespace lockstep {

/// One tensor per rank of the mesh that lives in this process, in the order of Mesh::local_ranks().
using Shards = c10::SmallVector<at::Tensor, 4>;

/// The shards of the ranks that live in this process, shared by all sharded tensors that alias each other.
///
/// A set may be pending: a collective that completes on first use, in any order among sets. It may be evicted: freed,
/// and made again on first use (fully sharded parameters between forward and backward). Shards of a Partial are sums
/// in the accumulation dtype (domain.h), one entry per rank, and are no values of the tensor: read them as sums().
class ShardSet {
 public:
  ShardSet(Shards shards, bool partial) : shards_(std::move(shards)), partial_(partial) {}
  ShardSet(std::function<Shards()> pending, bool partial) : pending_(std::move(pending)), partial_(partial) {}

  /// The shards of a tensor without a Partial axis.
  const Shards& whole() {
    LOCKSTEP_CHECK(!partial_, "the shards of a Partial are not values");
    return either();
  }
  /// The unreduced sums of a Partial.
  const Shards& sums() {
    LOCKSTEP_CHECK(partial_, "not a Partial");
    return either();
  }
  /// For code that treats both alike, such as a linear op.
  const Shards& either() {
    if (pending_) [[unlikely]]
      complete();
    return shards_;
  }

  /// Frees the shards; `again` makes them on the next use.
  void evict(std::function<Shards()> again) {
    shards_.clear();
    pending_ = std::move(again);
  }
  bool is_pending() const { return static_cast<bool>(pending_); }

  /// A set that several ranks share bytes in (gathered parameters); in-place ops on it are an error.
  void make_read_only() { read_only_ = true; }
  bool is_read_only() const { return read_only_; }

 private:
  void complete() {
    auto run = std::exchange(pending_, nullptr);
    shards_ = run();
  }

  Shards shards_;
  std::function<Shards()> pending_;
  bool partial_;
  bool read_only_ = false;
};

}  // namespace lockstep
