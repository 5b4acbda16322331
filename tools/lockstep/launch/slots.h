#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep::tool {

/// The places that a launch has for ranks. That of a lost rank is used again after a while.
class Slots {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Seconds = std::chrono::duration<double>;

  /// Infinity: lost ones are gone for good.
  Slots(int64_t count, Seconds back_after) : count_(count), back_after_(back_after) {}

  /// So many are lost now. REQUIRES: so many are free.
  void lose(int64_t lost, Time now);
  /// Those that can be used.
  int64_t free(Time now);
  /// Whether there will be more.
  bool are_coming() const { return !back_at_.empty() && back_at_.front() != Time::max(); }

 private:
  int64_t count_;
  Seconds back_after_;
  std::vector<Time> back_at_;  ///< of those that are lost, the earliest first
};

}  // namespace lockstep::tool
