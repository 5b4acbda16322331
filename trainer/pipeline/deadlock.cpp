#include "trainer/pipeline/deadlock.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "trainer/pipeline/needs.h"

namespace lockstep::pipeline {
namespace {

/// A rank that waits, and for what.
struct Wait {
  Place at, need;
};

Wait wait_of(const Schedule& schedule, const Needs& needs, const std::vector<int64_t>& next, int64_t rank) {
  const Place at{rank, next[static_cast<size_t>(rank)]};
  const auto all = needs.of(at);
  const auto unmet = std::find_if(
      all.begin(), all.end(), [&](const Place& need) { return need.index >= next[static_cast<size_t>(need.rank)]; });
  LOCKSTEP_CHECK(unmet != all.end(), "{} of {} can begin", text_of(action_at(schedule, at)), schedule.name);
  return {at, *unmet};
}

/// From the first rank that waits to where the chain of waits closes, without what leads there.
std::vector<Wait> cycle(const Schedule& schedule, const std::vector<int64_t>& next) {
  const Needs needs(schedule);
  int64_t rank = 0;
  while (next[static_cast<size_t>(rank)] == static_cast<int64_t>(schedule.ranks[static_cast<size_t>(rank)].size()))
    ++rank;
  std::vector<Wait> chain;
  for (;; rank = chain.back().need.rank) {
    const auto again = std::find_if(chain.begin(), chain.end(), [&](const Wait& wait) { return wait.at.rank == rank; });
    if (again != chain.end()) return {again, chain.end()};
    chain.push_back(wait_of(schedule, needs, next, rank));
  }
}

/// "0B0", or of two that begin together "0F5 with 3B2".
std::string step_text(const Schedule& schedule, const Place& place) {
  const auto& action = action_at(schedule, place);
  if (!action.overlaps_next) return text_of(action);
  return fmt::format("{} with {}", text_of(action), text_of(action_at(schedule, {place.rank, place.index + 1})));
}

bool is_part_of(const Schedule& schedule, const Place& need, const Place& at) {
  return need == at || (action_at(schedule, at).overlaps_next && need == Place{at.rank, at.index + 1});
}

std::string wait_text(const Schedule& schedule, const Wait& wait, const Place& other) {
  const auto need = text_of(action_at(schedule, wait.need));
  const auto begin = fmt::format("rank {} waits at {} for {}", wait.at.rank, step_text(schedule, wait.at), need);
  const bool is_own = wait.need.rank == wait.at.rank;
  if (is_own && is_part_of(schedule, wait.need, wait.at)) return begin + ", which begins with it";
  if (is_own) return begin + ", which it has behind that";
  if (is_part_of(schedule, wait.need, other)) return fmt::format("{} of rank {}", begin, wait.need.rank);
  return fmt::format("{}, which rank {} has behind {}", begin, wait.need.rank, step_text(schedule, other));
}

}  // namespace

void fail_deadlocked(const Schedule& schedule, const std::vector<int64_t>& next) {
  const auto waits = cycle(schedule, next);
  std::vector<std::string> texts;
  for (size_t i = 0; i < waits.size(); ++i)
    texts.push_back(wait_text(schedule, waits[i], waits[(i + 1) % waits.size()].at));
  fail<BadInput>("{}: never ends: {}. Move one of these actions.", schedule.name, fmt::join(texts, "; "));
}

}  // namespace lockstep::pipeline
