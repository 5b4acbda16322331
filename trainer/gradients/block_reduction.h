#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <utility>
#include <vector>

#include "trainer/gradients/gradient_taker.h"
#include "trainer/gradients/reduction_bucket.h"

namespace lockstep::trainer {

/// The gradients of one block on their way to their parameters' dp_shard cuts, in one bucket. What is Partial over
/// other axes stays so, for whoever accumulates to reduce once a step. All in fp32 or wider.
class BlockReduction {
 public:
  explicit BlockReduction(GradientTaker taker) : taker_(std::move(taker)) {}

  /// Throws BadInput for a gradient whose bits the number of microbatches would change.
  void add(const at::Tensor& leaf, const at::Tensor& gradient);
  bool empty() const { return bucket_.empty(); }
  /// As of a ReductionBucket.
  bool overlaps() const { return bucket_.overlaps(); }
  void start() { bucket_.start(); }
  /// Waits for what is not there, and gives it to who takes gradients; to `autograd`, by number of what was added, if
  /// nobody does. Once.
  void finish(std::vector<at::Tensor>* autograd = nullptr);

 private:
  struct Gradient {
    at::Tensor leaf;
    bool is_nodes;
  };

  GradientTaker taker_;
  std::vector<Gradient> gradients_;
  ReductionBucket bucket_;
};

/// One reduction is under way at most, if it overlaps(): it travels while the block before computes its backward, and
/// keeps its bytes for so long. Any other is waited for.
class BlockReductions {
 public:
  /// Lets it begin once the one before has ended. It is not empty.
  void add(BlockReduction reduction);
  /// Ends what is under way. To be called after each microbatch's backward.
  void finish();
  /// Forgets it: the step did not come to its end.
  void forget() { current_.reset(); }

 private:
  std::optional<BlockReduction> current_;
};

}  // namespace lockstep::trainer
