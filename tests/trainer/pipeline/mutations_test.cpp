#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "core/error.h"
#include "tests/trainer/pipeline/drawn_schedule.h"
#include "trainer/pipeline/check.h"
#include "trainer/pipeline/schedule_csv.h"

/// Schedules with one thing wrong, against a simulation that knows nothing of the check.
namespace lockstep::pipeline {
namespace {

/// What came out so far: "F 3 1" is there when microbatch 1 has gone forwards through stage 3. A whole backward leaves
/// "B", and "I" and "W" as its parts do.
using Results = std::set<std::string>;

std::string result(char kind, int64_t stage, int64_t microbatch) {
  return fmt::format("{} {} {}", kind, stage, microbatch);
}

/// Whether it can run now, by what is there; adds what comes out.
bool run(const Action& action, int64_t stages, Results& results) {
  const auto there = [&](char kind, int64_t stage) { return results.contains(result(kind, stage, action.microbatch)); };
  const auto done = [&](char kind) { return results.insert(result(kind, action.stage, action.microbatch)).second; };
  const char letter = letter_of(action.kind);
  if (letter == 'F') return (action.stage == 0 || there('F', action.stage - 1)) && done('F');
  if (letter == 'W') return there('I', action.stage) && !there('B', action.stage) && done('W');
  if (!there('F', action.stage) || there('I', action.stage)) return false;
  if (action.stage + 1 < stages && !there('I', action.stage + 1)) return false;
  done('I');
  return letter == 'I' || (done('W') && done('B'));
}

/// A forward and a whole backward.
bool is_pair(const std::vector<Action>& actions, size_t at) {
  if (at + 1 == actions.size() || actions[at + 1].overlaps_next) return false;
  return std::string{letter_of(actions[at].kind), letter_of(actions[at + 1].kind)} == "FB";
}

/// Whether each rank comes to its end, with everything done once and stages where they belong. Of a pair both are there
/// before either begins.
bool ends(const Schedule& schedule) {
  Results results;
  std::vector<size_t> next(schedule.ranks.size());
  const auto step = [&](size_t rank) {
    const auto& actions = schedule.ranks[rank];
    if (next[rank] == actions.size()) return false;
    const size_t count = actions[next[rank]].overlaps_next ? 2 : 1;
    auto later = results;
    if (count == 2 && !is_pair(actions, next[rank])) return false;
    for (size_t i = next[rank]; i < next[rank] + count; ++i) {
      if (schedule.rank_of_stage[static_cast<size_t>(actions[i].stage)] != static_cast<int64_t>(rank)) return false;
      auto alone = results;
      if (!run(actions[i], schedule.stages(), alone) || !run(actions[i], schedule.stages(), later)) return false;
    }
    results = later;
    next[rank] += count;
    return true;
  };
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (size_t rank = 0; rank < next.size(); ++rank)
      while (step(rank)) has_moved = true;
  }
  for (size_t rank = 0; rank < next.size(); ++rank)
    if (next[rank] < schedule.ranks[rank].size()) return false;
  const auto count = std::count_if(results.begin(), results.end(), [](const auto& text) { return text[0] != 'B'; });
  return count == 3 * schedule.stages() * schedule.microbatches;
}

size_t index_of(const std::vector<Action>& actions) { return *rc::gen::inRange<size_t>(0, actions.size()); }

/// Changes one thing, and says what.
std::string mutate(Schedule& schedule) {
  auto& ranks = schedule.ranks;
  const auto rank = *rc::gen::inRange<size_t>(0, ranks.size());
  auto& actions = ranks[rank];
  const auto at = index_of(actions);
  const auto action = actions[at];
  const auto place = [](std::vector<Action>& list, size_t index) {
    return list.begin() + static_cast<ptrdiff_t>(index);
  };
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return actions.erase(place(actions, at)), "drop";
    case 1:
      return actions.insert(place(actions, index_of(actions)), action), "repeat";
    case 2: {
      auto& others = ranks[*rc::gen::inRange<size_t>(0, ranks.size())];
      actions.erase(place(actions, at));
      const auto to = others.empty() ? 0 : index_of(others);
      return others.insert(place(others, to), action), "move to a rank";
    }
    case 3:
      return std::swap(actions[at], actions[index_of(actions)]), "swap";
    case 4:
      return actions[at].kind = static_cast<ActionKind>(*rc::gen::inRange(0, kActionKinds)), "another kind";
    default:
      return actions[at].microbatch = *rc::gen::inRange<int64_t>(0, schedule.microbatches), "another microbatch";
  }
}

bool is_accepted(const Schedule& schedule) try {
  check(schedule);
  return true;
} catch (const BadInput&) {
  return false;
}

RC_GTEST_PROP(PipelineMutations, EverySchedulesRanksComeToTheirEnds, ()) {
  RC_ASSERT(ends((*drawn_schedule(5, 3, 9)).make()));
}

RC_GTEST_PROP(PipelineMutations, AreRefusedUnlessTheyCanBeCarriedOut, ()) {
  auto schedule = (*drawn_schedule(5, 3, 9)).make();
  const auto what = mutate(schedule);
  const bool can_end = ends(schedule);
  RC_CLASSIFY(can_end, what + " does no harm");
  RC_CLASSIFY(!can_end, what + " is refused");
  RC_LOG() << to_csv(schedule);
  RC_ASSERT(is_accepted(schedule) == can_end);
}

}  // namespace
}  // namespace lockstep::pipeline
