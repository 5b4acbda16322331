#pragma once
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/gradients/reduction_bucket.h"

namespace lockstep::trainer {

/// Of the part that a rank gets of `sum` in `target`, as all ranks know it alike: where a cut is uneven, of the mean.
int64_t bytes_of_part(const at::Tensor& sum, const Layout& target);

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
    ReductionBucket reduction;  ///< empty once it is over
    std::vector<size_t> numbers;
    int64_t bytes = 0;
  };

  bool is_full(const Bucket& bucket) const { return bucket.bytes >= std::max<int64_t>(bucket_bytes_, 1); }
  void start_last();
  void finish(Bucket& bucket);

  int64_t bucket_bytes_;
  std::string place_;
  std::vector<Bucket> buckets_;      ///< the last one is filled
  std::vector<at::Tensor> results_;  ///< by number; not defined while they are in a bucket
};

}  // namespace lockstep::trainer
