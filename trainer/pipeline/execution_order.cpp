#include "trainer/pipeline/execution_order.h"

#include <algorithm>

#include "trainer/pipeline/deadlock.h"
#include "trainer/pipeline/needs.h"

namespace lockstep::pipeline {
namespace {

/// How far each rank has come.
class Progress {
 public:
  explicit Progress(const Schedule& schedule) : schedule_(schedule), needs_(schedule), next_(schedule.ranks.size()) {}

  /// Whether any rank has done anything.
  bool round(std::vector<Place>& order) {
    const size_t before = order.size();
    for (size_t rank = 0; rank < next_.size(); ++rank)
      for (Place place{static_cast<int64_t>(rank), next_[rank]}; can_begin(place); place.index = ++next_[rank])
        order.push_back(place);
    return order.size() > before;
  }

  /// The places that ranks wait at; of one that has come to its end the place behind it.
  const std::vector<int64_t>& next() const { return next_; }

 private:
  bool is_done(const Place& place) const { return place.index < next_[static_cast<size_t>(place.rank)]; }
  bool can_begin(const Place& place) const {
    const auto& actions = schedule_.ranks[static_cast<size_t>(place.rank)];
    if (place.index == static_cast<int64_t>(actions.size())) return false;
    const auto needs = needs_.of(place);
    return std::all_of(needs.begin(), needs.end(), [&](const Place& need) { return is_done(need); });
  }

  const Schedule& schedule_;
  Needs needs_;
  std::vector<int64_t> next_;
};

}  // namespace

std::vector<Place> execution_order(const Schedule& schedule) {
  size_t actions = 0;
  for (const auto& rank : schedule.ranks) actions += rank.size();
  Progress progress(schedule);
  std::vector<Place> order;
  order.reserve(actions);
  while (order.size() < actions)
    if (!progress.round(order)) fail_deadlocked(schedule, progress.next());
  return order;
}

}  // namespace lockstep::pipeline
