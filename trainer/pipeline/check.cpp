#include "trainer/pipeline/check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "trainer/pipeline/execution_order.h"

namespace lockstep::pipeline {
namespace {

std::string place_text(const Place& place) { return fmt::format("rank {}, action {}", place.rank, place.index); }

void check_sizes(const Schedule& schedule) {
  if (schedule.ranks.empty() || schedule.stages() == 0 || schedule.microbatches < 1)
    fail<BadInput>("{}: has {} ranks, {} stages and {} microbatches; one of each is the least.", schedule.name,
                   schedule.ranks.size(), schedule.stages(), schedule.microbatches);
  const auto ranks = static_cast<int64_t>(schedule.ranks.size());
  if (ranks > kMostRanks) fail<BadInput>("{}: has {} ranks, must have at most {}.", schedule.name, ranks, kMostRanks);
  for (int64_t stage = 0; stage < schedule.stages(); ++stage) {
    const int64_t rank = schedule.rank_of_stage[static_cast<size_t>(stage)];
    if (rank < 0 || rank >= ranks)
      fail<BadInput>("{}: stage {} is on no rank: every stage has to be on one of {} ranks.", schedule.name, stage,
                     ranks);
  }
}

bool begins_pair(const Schedule& schedule, const Place& place) {
  const auto& actions = schedule.ranks[static_cast<size_t>(place.rank)];
  const auto next = static_cast<size_t>(place.index) + 1;
  return action_at(schedule, place).kind == ActionKind::kForward && next < actions.size() &&
         actions[next].kind == ActionKind::kBackward && !actions[next].overlaps_next;
}

void check_place(const Schedule& schedule, const Place& place) {
  const auto& action = action_at(schedule, place);
  const auto where = [&] { return fmt::format("{}: {}: {}", schedule.name, place_text(place), text_of(action)); };
  if (action.stage < 0 || action.stage >= schedule.stages())
    fail<BadInput>("{}: there is no stage {}; there are {}.", where(), action.stage, schedule.stages());
  if (action.microbatch < 0 || action.microbatch >= schedule.microbatches)
    fail<BadInput>("{}: there is no microbatch {}; there are {}.", where(), action.microbatch, schedule.microbatches);
  const int64_t holder = schedule.rank_of_stage[static_cast<size_t>(action.stage)];
  if (holder != place.rank) fail<BadInput>("{}: stage {} is on rank {}.", where(), action.stage, holder);
  if (action.overlaps_next && !begins_pair(schedule, place))
    fail<BadInput>(
        "{}: begins together with the next action; a forward (F) and then a whole backward (B) were expected.",
        where());
}

/// What is known of one stage and microbatch: where each kind stands.
using Found = std::array<std::optional<Place>, kActionKinds>;

const std::optional<Place>& of(const Found& found, ActionKind kind) { return found[static_cast<size_t>(kind)]; }

void add(const Schedule& schedule, const Place& place, Found& found) {
  const auto& action = action_at(schedule, place);
  auto& own = found[static_cast<size_t>(action.kind)];
  if (own)
    fail<BadInput>("{}: {} is done twice: {}, and {}.", schedule.name, text_of(action), place_text(*own),
                   place_text(place));
  own = place;
}

void check_complete(const Schedule& schedule, int64_t stage, int64_t microbatch, const Found& found) {
  const int64_t rank = schedule.rank_of_stage[static_cast<size_t>(stage)];
  const auto text = [&](ActionKind kind) { return text_of({kind, stage, microbatch}); };
  const auto whole = of(found, ActionKind::kBackward);
  for (const auto part : {ActionKind::kBackwardInput, ActionKind::kBackwardWeight})
    if (whole && of(found, part))
      fail<BadInput>("{}: {} holds what {} does again: {}, and {}.", schedule.name, text(ActionKind::kBackward),
                     text(part), place_text(*whole), place_text(*of(found, part)));
  std::optional<ActionKind> missing;
  if (!whole) {
    for (const auto part : {ActionKind::kBackwardWeight, ActionKind::kBackwardInput})
      if (!of(found, part)) missing = part;
    if (!of(found, ActionKind::kBackwardWeight) && !of(found, ActionKind::kBackwardInput))
      missing = ActionKind::kBackward;
  }
  if (!of(found, ActionKind::kForward)) missing = ActionKind::kForward;
  if (missing)
    fail<BadInput>("{}: {} is missing; it belongs to rank {}{}.", schedule.name, text(*missing), rank,
                   *missing == ActionKind::kBackward
                       ? fmt::format(" (or its two parts, {} and {})", text(ActionKind::kBackwardInput),
                                     text(ActionKind::kBackwardWeight))
                       : "");
}

/// Stage and microbatch as one number.
int64_t key_of(const Schedule& schedule, int64_t stage, int64_t microbatch) {
  return stage * schedule.microbatches + microbatch;
}

/// Ends at the first that is not complete, so that a few actions with large numbers take no time.
void check_each_microbatch(const Schedule& schedule, const std::unordered_map<int64_t, Found>& all) {
  static const Found nothing;
  for (int64_t stage = 0; stage < schedule.stages(); ++stage)
    for (int64_t microbatch = 0; microbatch < schedule.microbatches; ++microbatch) {
      const auto found = all.find(key_of(schedule, stage, microbatch));
      check_complete(schedule, stage, microbatch, found == all.end() ? nothing : found->second);
    }
}

}  // namespace

void check_actions(const Schedule& schedule) {
  check_sizes(schedule);
  std::unordered_map<int64_t, Found> all;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    if (actions.empty()) fail<BadInput>("{}: rank {} has nothing to do.", schedule.name, rank);
    for (size_t index = 0; index < actions.size(); ++index) {
      const Place place{static_cast<int64_t>(rank), static_cast<int64_t>(index)};
      check_place(schedule, place);
      add(schedule, place, all[key_of(schedule, actions[index].stage, actions[index].microbatch)]);
    }
  }
  check_each_microbatch(schedule, all);
}

void check(const Schedule& schedule) {
  check_actions(schedule);
  execution_order(schedule);
}

}  // namespace lockstep::pipeline
