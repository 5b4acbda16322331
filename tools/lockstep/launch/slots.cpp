#include "tools/lockstep/launch/slots.h"

#include <cmath>

#include "core/error.h"

namespace lockstep::tool {

void Slots::lose(int64_t lost, Time now) {
  LOCKSTEP_CHECK(lost <= free(now), "{} slots are lost", lost);
  const auto back =
      std::isinf(back_after_.count()) ? Time::max() : now + std::chrono::duration_cast<Time::duration>(back_after_);
  back_at_.insert(back_at_.end(), static_cast<size_t>(lost), back);
}

int64_t Slots::free(Time now) {
  std::erase_if(back_at_, [now](Time back) { return back <= now; });
  return count_ - static_cast<int64_t>(back_at_.size());
}

}  // namespace lockstep::tool
