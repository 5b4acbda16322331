#include "trainer/gradients/bucketed_reductions.h"

#include <utility>

#include "runtime/context/scopes.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
int64_t bytes_of_part(const at::Tensor& sum, const Layout& target) {
  const auto& spec = spec_of(sum);
  int64_t parts = 1;
  for (int axis = 0; axis < target.axis_count(); ++axis)
    if (target[axis].is_shard()) parts *= target.mesh().axis_size(axis);
  return c10::multiply_integers(spec.sizes) * static_cast<int64_t>(c10::elementSize(storage(spec))) / parts;
}

BucketedReductions::BucketedReductions(int64_t bucket_bytes, std::string place)
    : bucket_bytes_(bucket_bytes), place_(std::move(place)) {}

size_t BucketedReductions::add(at::Tensor sum, const Layout& target) {
  const size_t number = results_.size();
  if (layout_of(sum) == target) {
    results_.push_back(std::move(sum));
    return number;
  }
  results_.emplace_back();
  if (buckets_.empty() || is_full(buckets_.back())) buckets_.emplace_back();
  auto& bucket = buckets_.back();
  bucket.numbers.push_back(number);
  bucket.bytes += bytes_of_part(sum, target);
  bucket.reduction.add(std::move(sum), target);
  if (is_full(bucket) && bucket.reduction.overlaps()) start_last();
  return number;
}

/// The one before has travelled for as long as this was filled.
void BucketedReductions::start_last() {
  {
    const ModuleScope module(place_);
    buckets_.back().reduction.start();
  }
  if (buckets_.size() > 1) finish(buckets_[buckets_.size() - 2]);
}

void BucketedReductions::finish(Bucket& bucket) {
  const ModuleScope module(place_);
  const auto sums = bucket.reduction.finish();
  for (size_t i = 0; i < sums.size(); ++i) results_[bucket.numbers[i]] = sums[i];
}

std::vector<at::Tensor> BucketedReductions::finish() {
  for (auto& bucket : buckets_) finish(bucket);
  buckets_.clear();
  return std::exchange(results_, {});
}

void BucketedReductions::restart() {
  buckets_.clear();
  results_.clear();
}

}  // namespace lockstep::trainer
