#include "trainer/gradients/reduction_bucket.h"

#include <utility>

#include "runtime/context/scopes.h"
#include "runtime/context/world.h"

namespace lockstep::trainer {
namespace {

constexpr const char* kName = "reduce_gradients";

}  // namespace

void ReductionBucket::add(at::Tensor sum, const Layout& target) {
  sums_.push_back(std::move(sum));
  targets_.push_back(target);
}

bool ReductionBucket::overlaps() const { return world().overlaps() && world().shard_device().is_cpu(); }

void ReductionBucket::start() {
  const CommunicationScope scope(world(), kName);
  underway_.emplace(std::exchange(sums_, {}), targets_);
  underway_->start();
}

std::vector<at::Tensor> ReductionBucket::finish() {
  if (empty()) return {};
  const CommunicationScope scope(world(), kName);
  if (!underway_) underway_.emplace(std::exchange(sums_, {}), targets_);
  targets_.clear();
  return std::exchange(underway_, std::nullopt)->finish();
}

}  // namespace lockstep::trainer
