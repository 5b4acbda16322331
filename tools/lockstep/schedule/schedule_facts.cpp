#include "tools/lockstep/schedule/schedule_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "trainer/pipeline/check.h"
#include "trainer/pipeline/placement.h"

namespace lockstep::tool {
namespace {

constexpr const char* kRow = "{:>4}  {:<{}}  {:>8}  {:>6}  {:>6}  {:>11}\n";

std::string plural(int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

nlohmann::ordered_json json_of_rank(const ScheduleFacts& facts, int64_t rank) {
  const auto index = static_cast<size_t>(rank);
  auto actions = nlohmann::ordered_json::array();
  for (size_t i = 0; i < facts.schedule.ranks[index].size(); ++i) {
    const auto& action = facts.schedule.ranks[index][i];
    const auto& interval = facts.timeline.ranks[index][i];
    actions.push_back({{"action", pipeline::text_of(action)}, {"begin", interval.begin}, {"end", interval.end}});
    if (action.overlaps_next) actions.back()["overlaps_next"] = true;
  }
  return {{"rank", rank},
          {"stages", pipeline::stages_of(facts.schedule.rank_of_stage, rank)},
          {"bubble", facts.timeline.bubble(rank)},
          {"gaps", facts.timeline.gaps(rank)},
          {"most_activations", facts.held.of_rank[index]},
          {"actions", actions}};
}

}  // namespace

ScheduleFacts facts_of(pipeline::Schedule schedule, const pipeline::Durations& durations) {
  pipeline::check_actions(schedule);
  auto timeline = pipeline::simulate(schedule, durations);
  auto held = pipeline::held_activations(schedule);
  return {std::move(schedule), durations, std::move(timeline), std::move(held)};
}

std::string ScheduleFacts::title() const {
  return fmt::format("{}: {}, {}, {}", schedule.name, plural(ranks(), "rank"), plural(schedule.stages(), "stage"),
                     fmt::format("{} microbatch{}", schedule.microbatches, schedule.microbatches == 1 ? "" : "es"));
}

std::string ScheduleFacts::stages_text(int64_t rank) const {
  return fmt::format("{}", fmt::join(pipeline::stages_of(schedule.rank_of_stage, rank), " "));
}

std::string times_text(const pipeline::Durations& durations) {
  using pipeline::ActionKind;
  return fmt::format("F {:g}, B {:g}, I {:g}, W {:g}, transfer {:g}", durations.of(ActionKind::kForward),
                     durations.of(ActionKind::kBackward), durations.of(ActionKind::kBackwardInput),
                     durations.of(ActionKind::kBackwardWeight), durations.transfer);
}

std::string share_text(double share) {
  const double percent = std::round(share * 1000) / 10;
  return fmt::format("{:.1f} %", percent > 0 ? percent : 0);  // rounding errors of zero are not negative
}

std::string rank_table(const ScheduleFacts& facts) {
  size_t width = 6;
  for (int64_t rank = 0; rank < facts.ranks(); ++rank) width = std::max(width, facts.stages_text(rank).size());
  auto text = fmt::format(kRow, "rank", "stages", width, "actions", "bubble", "gaps", "activations");
  int64_t actions = 0, most = 0;
  for (int64_t rank = 0; rank < facts.ranks(); ++rank) {
    const auto count = static_cast<int64_t>(facts.schedule.ranks[static_cast<size_t>(rank)].size());
    const int64_t held = facts.held.of_rank[static_cast<size_t>(rank)];
    text += fmt::format(kRow, rank, facts.stages_text(rank), width, count, share_text(facts.timeline.bubble(rank)),
                        share_text(facts.timeline.gaps(rank)), held);
    actions += count;
    most = std::max(most, held);
  }
  return text + fmt::format(kRow, "all", "", width, actions, share_text(facts.timeline.bubble()),
                            share_text(facts.timeline.gaps()), most);
}

nlohmann::ordered_json json_of(const ScheduleFacts& facts) {
  using pipeline::ActionKind;
  auto ranks = nlohmann::ordered_json::array();
  for (int64_t rank = 0; rank < facts.ranks(); ++rank) ranks.push_back(json_of_rank(facts, rank));
  return {{"schedule", facts.schedule.name},
          {"microbatches", facts.schedule.microbatches},
          {"rank_of_stage", facts.schedule.rank_of_stage},
          {"times",
           {{"F", facts.durations.of(ActionKind::kForward)},
            {"B", facts.durations.of(ActionKind::kBackward)},
            {"I", facts.durations.of(ActionKind::kBackwardInput)},
            {"W", facts.durations.of(ActionKind::kBackwardWeight)},
            {"T", facts.durations.transfer}}},
          {"left_out", facts.left_out},
          {"length", facts.timeline.length()},
          {"bubble", facts.timeline.bubble()},
          {"gaps", facts.timeline.gaps()},
          {"ranks", ranks}};
}

}  // namespace lockstep::tool
