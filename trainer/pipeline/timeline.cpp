#include "trainer/pipeline/timeline.h"

#include <algorithm>

#include "core/error.h"
#include "trainer/pipeline/execution_order.h"
#include "trainer/pipeline/needs.h"

namespace lockstep::pipeline {

double Timeline::length() const {
  double end = 0;
  for (const auto& rank : ranks) end = std::max(end, rank.back().end);
  return end;
}

double Timeline::busy(int64_t rank) const {
  double sum = 0;
  for (const auto& interval : ranks[static_cast<size_t>(rank)]) sum += interval.end - interval.begin;
  return sum;
}

double Timeline::span(int64_t rank) const {
  const auto& intervals = ranks[static_cast<size_t>(rank)];
  return intervals.back().end - intervals.front().begin;
}

double Timeline::bubble() const {
  double sum = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) sum += busy(static_cast<int64_t>(rank));
  return 1 - sum / (static_cast<double>(ranks.size()) * length());
}

double Timeline::gaps() const {
  double largest = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) largest = std::max(largest, gaps(static_cast<int64_t>(rank)));
  return largest;
}

Timeline simulate(const Schedule& schedule, const Durations& durations) {
  const Needs needs(schedule);
  Timeline timeline;
  timeline.ranks.resize(schedule.ranks.size());
  for (const auto& place : execution_order(schedule)) {
    auto& rank = timeline.ranks[static_cast<size_t>(place.rank)];
    double begin = rank.empty() ? 0 : rank.back().end;
    for (const auto& need : needs.of(place)) {
      const double end = timeline.ranks[static_cast<size_t>(need.rank)][static_cast<size_t>(need.index)].end;
      begin = std::max(begin, end + (need.rank == place.rank ? 0 : durations.transfer));
    }
    rank.push_back({begin, begin + durations.of(action_at(schedule, place).kind)});
  }
  return timeline;
}

}  // namespace lockstep::pipeline
