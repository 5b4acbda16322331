#include "trainer/sharding/gather_order.h"

#include <algorithm>

#include "runtime/context/world.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {

/// Compares nothing that only this rank knows: all ranks must come to the same.
bool GatherOrder::Request::operator==(const Request& other) const {
  const auto same = [](const at::Tensor& a, const at::Tensor& b) { return sharded(a).shards() == sharded(b).shards(); };
  return recipe == other.recipe && std::ranges::equal(parameters, other.parameters, same);
}

PendingBucket GatherOrder::Request::bucket() const {
  std::vector<at::Tensor> cast;
  for (const auto& parameter : parameters) cast.push_back(parameter.to(recipe.dtype));
  return {cast, recipe.layouts};
}

int64_t GatherOrder::Request::version() const {
  int64_t version = 0;
  for (const auto& parameter : parameters) version += parameter._version();
  return version;
}

std::vector<at::Tensor> GatherOrder::gather(at::TensorList parameters, const GatherRecipe& recipe) {
  Request request{{}, recipe};
  for (const auto& parameter : parameters) request.parameters.push_back(parameter.tensor_data());
  learn(request);
  auto bucket = take_pending();
  if (!bucket) bucket.emplace(request.bucket());
  ++next_;
  start_next();
  return bucket->finish();
}

void GatherOrder::restart() {
  next_ = 0;
  pending_.reset();
}

/// Makes it the next request, if it was not.
void GatherOrder::learn(const Request& request) {
  if (next_ < requests_.size() && requests_[next_] == request) return;
  pending_.reset();
  requests_.resize(next_);
  requests_.push_back(request);
}

/// None if nothing has departed, or if it was written since.
std::optional<PendingBucket> GatherOrder::take_pending() {
  auto taken = std::exchange(pending_, std::nullopt);
  if (taken && requests_[next_].version() != version_) taken.reset();
  return taken;
}

void GatherOrder::start_next() {
  if (next_ == requests_.size()) return;
  const auto& request = requests_[next_];
  if (request.parameters.empty() || !layout_of(request.parameters[0]).mesh().world().overlaps()) return;
  pending_.emplace(request.bucket());
  pending_->start();
  version_ = request.version();
}

}  // namespace lockstep::trainer
