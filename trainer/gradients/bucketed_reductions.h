#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/redistribution/redistribute.h"

namespace lockstep::trainer {

/// What reductions of gradients are called.
inline constexpr const char* kReduceGradients = "reduce_gradients";

/// Whether a reduction may travel while backward goes on: World::overlaps(), between CPUs.
bool reductions_overlap(const Mesh& mesh);

/// The sums of a step that are still Partial, reduced in buckets: a bucket begins as soon as it is full, and is waited
/// for when the next one is. Buckets are filled in the order in which sums come, all ranks alike.
class BucketedReductions {
 public:
  /// A bucket is full with so many bytes of what a rank has reduced; 0: with anything. `place`: the module that they
  /// are called by; empty: none.
  BucketedReductions(int64_t bucket_bytes, std::string place);

  /// The number of the sum.
  size_t add(at::Tensor sum, const Layout& target);
  /// All of them in their targets, by number. Starts anew.
  std::vector<at::Tensor> finish();
  /// What is under way is forgotten.
  void restart();

 private:
  struct Bucket {
    std::vector<size_t> numbers;
    std::vector<at::Tensor> sums;
    std::vector<Layout> targets;
    int64_t bytes = 0;
    std::optional<PendingBucket> underway = {};
  };

  bool is_full(const Bucket& bucket) const { return bucket.bytes >= std::max<int64_t>(bucket_bytes_, 1); }
  void start_last();
  void start(Bucket& bucket) const;
  void finish(Bucket& bucket);
  std::vector<at::Tensor> reduced(Bucket& bucket) const;

  int64_t bucket_bytes_;
  std::string place_;
  std::vector<Bucket> buckets_;      ///< the last one is filled
  std::vector<at::Tensor> results_;  ///< by number; not defined while they are in a bucket
};

}  // namespace lockstep::trainer
