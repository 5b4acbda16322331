#include "runtime/kernels/products/shared_factors.h"

#include <algorithm>

#include "runtime/kernels/simd/scratch.h"

namespace lockstep::kernels {
namespace {

constexpr int64_t kRoom = int64_t{64} << 20;  ///< bytes of a thread; pages that nothing needs cost nothing
constexpr int64_t kLine = 64;

thread_local SharedFactors* innermost = nullptr;

/// What an outer scope has packed is there for as long as it lives: one buffer, filled from where it stands.
std::byte* room() { return scratch<std::byte, Purpose::kSharedRight>().reserve(kRoom); }

}  // namespace

SharedFactors::SharedFactors(std::vector<Bytes> ranges)
    : ranges_(std::move(ranges)), used_(innermost ? innermost->used_ : 0), outer_(innermost) {
  innermost = this;
}

SharedFactors::~SharedFactors() { innermost = outer_; }

SharedFactors* SharedFactors::of(const void* data) {
  if (!innermost) return nullptr;
  const auto* at = static_cast<const std::byte*>(data);
  const auto holds = [&](const Bytes& range) { return range.first <= at && at < range.second; };
  return std::ranges::any_of(innermost->ranges_, holds) ? innermost : nullptr;
}

SharedFactors::Panels SharedFactors::panels_of(const Part& part, int64_t bytes) {
  const auto found = std::ranges::find(packed_, part, &std::pair<Part, void*>::first);
  if (found != packed_.end()) return {found->second, true};
  const int64_t size = (bytes + kLine - 1) / kLine * kLine;
  if (size > kRoom - used_) return {nullptr, false};
  packed_.emplace_back(part, room() + used_);
  used_ += size;
  return {packed_.back().second, false};
}

}  // namespace lockstep::kernels
