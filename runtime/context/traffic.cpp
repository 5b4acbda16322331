#include "runtime/context/traffic.h"

namespace lockstep {

TrafficCount Traffic::total(CollectiveKind kind) const {
  TrafficCount total;
  for (const auto& [axis, kinds] : counts_) {
    total.count += kinds[static_cast<size_t>(kind)].count;
    total.bytes += kinds[static_cast<size_t>(kind)].bytes;
  }
  return total;
}

TrafficCount Traffic::on(const std::string& axis, CollectiveKind kind) const {
  const auto found = counts_.find(axis);
  return found == counts_.end() ? TrafficCount{} : found->second[static_cast<size_t>(kind)];
}

double Traffic::bytes() const {
  double bytes = 0;
  for (size_t kind = 0; kind < kCollectiveKinds; ++kind) bytes += total(static_cast<CollectiveKind>(kind)).bytes;
  return bytes;
}

}  // namespace lockstep
