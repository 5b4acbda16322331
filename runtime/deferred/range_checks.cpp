#include "runtime/deferred/range_checks.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/plain/plain_tensors.h"

namespace lockstep {
namespace {

void require_within(const at::Tensor& bounds, int64_t count, const RangeChecks::Explain& explain) {
  const auto* both = bounds.const_data_ptr<int64_t>();
  if (both[0] < 0 || both[1] >= count) fail<BadInput>("{}", explain(both[0] < 0 ? both[0] : both[1]));
}

}  // namespace

void RangeChecks::require(const at::Tensor& values, int64_t count, Explain explain) {
  if (values.numel() == 0 || values.is_meta()) return;
  const PlainTensors guard;
  const auto [least, greatest] = at::aminmax(values);
  const auto bounds = at::stack({least, greatest}).to(c10::kLong);
  if (values.is_cpu() || count == 0) return require_within(bounds.cpu(), count, explain);
  waiting_.push_back({bounds, count, std::move(explain)});
  if (waiting_.size() >= kMostWaiting) look();
}

void RangeChecks::look() {
  const PlainTensors guard;
  const auto checks = std::exchange(waiting_, {});
  std::vector<at::Tensor> bounds;
  for (const auto& check : checks) bounds.push_back(check.bounds);
  const auto here = at::stack(bounds).cpu();
  for (size_t i = 0; i < checks.size(); ++i)
    require_within(here[static_cast<int64_t>(i)], checks[i].count, checks[i].explain);
}

}  // namespace lockstep
