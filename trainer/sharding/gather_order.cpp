#include "trainer/sharding/gather_order.h"

#include <algorithm>

#include "core/elementary/low_precision.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/own_ops/mesh_ops.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

constexpr auto kFormat = static_cast<int64_t>(elementary::NumberFormat::kE4m3);

}  // namespace

PendingGather::PendingGather(const std::vector<at::Tensor>& parameters, const GatherRecipe& recipe,
                             std::vector<at::Tensor> maxima)
    : maxima_(std::move(maxima)) {
  std::vector<at::Tensor> sent;
  for (size_t p = 0; p < parameters.size(); ++p)
    sent.push_back(maxima_[p].defined() ? mesh_ops::float8_codes(parameters[p], maxima_[p], kFormat, false)
                                        : parameters[p].to(recipe.dtypes[p]));
  bucket_.emplace(sent, recipe.layouts);
}

std::vector<at::Tensor> PendingGather::finish() {
  auto gathered = bucket_->finish();
  for (size_t p = 0; p < gathered.size(); ++p)
    if (maxima_[p].defined()) gathered[p] = mesh_ops::float8_numbers(gathered[p], maxima_[p], kFormat, false);
  return gathered;
}

/// Compares nothing that only this rank knows: all ranks must come to the same.
bool GatherOrder::Request::operator==(const Request& other) const {
  const auto same = [](const at::Tensor& a, const at::Tensor& b) { return sharded(a).shards() == sharded(b).shards(); };
  return recipe == other.recipe && std::ranges::equal(parameters, other.parameters, same);
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
  auto gather = take_pending();
  if (!gather) gather.emplace(pending(request));
  ++next_;
  start_next();
  return gather->finish();
}

at::Tensor GatherOrder::gather_alone(const at::Tensor& parameter, const GatherRecipe& recipe) {
  return pending({{parameter.tensor_data()}, recipe}).finish()[0];
}

PendingGather GatherOrder::pending(const Request& request) {
  return {request.parameters, request.recipe, maxima_of(request)};
}

std::vector<at::Tensor> GatherOrder::maxima_of(const Request& request) {
  std::vector<at::Tensor> maxima(request.parameters.size()), unknown;
  for (size_t p = 0; p < request.recipe.float8.size(); ++p)
    if (request.recipe.float8[p] && !known_maximum(request.parameters[p])) unknown.push_back(request.parameters[p]);
  if (!unknown.empty() && request.recipe.float8_at_once) add_others(unknown);
  reduce_maxima(unknown);
  for (size_t p = 0; p < request.recipe.float8.size(); ++p)
    if (request.recipe.float8[p]) maxima[p] = *known_maximum(request.parameters[p]);
  return maxima;
}

/// What was asked for before, and is quantised, and not known.
void GatherOrder::add_others(std::vector<at::Tensor>& parameters) const {
  const auto has = [&](const at::Tensor& one) {
    return std::ranges::any_of(
        parameters, [&](const at::Tensor& other) { return sharded(one).shards() == sharded(other).shards(); });
  };
  for (const auto& request : requests_)
    for (size_t p = 0; p < request.recipe.float8.size(); ++p)
      if (request.recipe.float8[p] && !known_maximum(request.parameters[p]) && !has(request.parameters[p]))
        parameters.push_back(request.parameters[p]);
}

const at::Tensor* GatherOrder::known_maximum(const at::Tensor& parameter) const {
  const auto found = maxima_.find(sharded(parameter).shards());
  return found != maxima_.end() && found->second.version == parameter._version() ? &found->second.value : nullptr;
}

void GatherOrder::reduce_maxima(const std::vector<at::Tensor>& parameters) {
  if (parameters.empty()) return;
  std::vector<at::Tensor> parts;
  for (const auto& parameter : parameters) parts.push_back(mesh_ops::absolute_maximum(parameter));
  const auto whole = Layout::replicated(layout_of(parts[0]).mesh());
  const CommunicationScope scope(whole.mesh().world(), "float8_scales");
  auto reduced = redistribute_bucket(parts, std::vector<Layout>(parts.size(), whole));
  for (size_t p = 0; p < parameters.size(); ++p)
    maxima_[sharded(parameters[p]).shards()] = {static_cast<int64_t>(parameters[p]._version()), std::move(reduced[p])};
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
std::optional<PendingGather> GatherOrder::take_pending() {
  auto taken = std::exchange(pending_, std::nullopt);
  if (taken && requests_[next_].version() != version_) taken.reset();
  return taken;
}

void GatherOrder::start_next() {
  if (next_ == requests_.size()) return;
  const auto& request = requests_[next_];
  if (request.parameters.empty() || !layout_of(request.parameters[0]).mesh().world().overlaps()) return;
  pending_.emplace(pending(request));
  pending_->start();
  version_ = request.version();
}

}  // namespace lockstep::trainer
