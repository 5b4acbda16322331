#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "core/collective_kind.h"

namespace lockstep {

/// What one rank put on the wire: number of collectives and bytes sent, as ring algorithms count them.
struct TrafficCount {
  int64_t count = 0;
  double bytes = 0;
};

/// An implicit Shard -> Replicate, the policy's counted warning: the op that caused it, and why it could not take the
/// operand as it lay ("[tp=S(1)] cuts 64 elements at 48, inside a leaf of 32").
struct ImplicitGather {
  std::string op, reason;
  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 of a comparison for a pointer
  auto operator<=>(const ImplicitGather&) const = default;
};

/// Counts communication per mesh axis and kind; a group of one rank counts nothing.
class Traffic {
 public:
  void add(const std::string& axis, CollectiveKind kind, double bytes) {
    auto& entry = counts_[axis][static_cast<size_t>(kind)];
    ++entry.count;
    entry.bytes += bytes;
  }
  void add_implicit_gather(const ImplicitGather& gather) { ++implicit_gathers_[gather]; }

  TrafficCount total(CollectiveKind kind) const;
  TrafficCount on(const std::string& axis, CollectiveKind kind) const;
  double bytes() const;
  const std::map<std::string, std::array<TrafficCount, kCollectiveKinds>>& by_axis() const { return counts_; }
  const std::map<ImplicitGather, int64_t>& implicit_gathers() const { return implicit_gathers_; }
  void clear() { *this = {}; }

 private:
  std::map<std::string, std::array<TrafficCount, kCollectiveKinds>> counts_;
  std::map<ImplicitGather, int64_t> implicit_gathers_;
};

}  // namespace lockstep
