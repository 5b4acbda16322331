#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "runtime/redistribution/redistribute.h"

namespace lockstep::trainer {

/// Gradients of one mesh on their way to their layouts, together; in the scopes that are open they communicate as
/// reduce_gradients.
class ReductionBucket {
 public:
  /// REQUIRES: not started.
  void add(at::Tensor sum, const Layout& target);
  bool empty() const { return targets_.empty(); }
  /// Whether it may travel while backward goes on: World::overlaps(), between CPUs. REQUIRES: !empty().
  bool overlaps() const;
  /// Comes back at once (PendingBucket). REQUIRES: overlaps().
  void start();
  /// Waits for what is not there: all of them, as they were added. It is empty then.
  std::vector<at::Tensor> finish();

 private:
  World& world() const { return targets_[0].mesh().world(); }

  std::vector<at::Tensor> sums_;
  std::vector<Layout> targets_;
  std::optional<PendingBucket> underway_;
};

}  // namespace lockstep::trainer
