#include "trainer/pipeline/kinds/schedule_kinds.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/suggest.h"
#include "trainer/pipeline/kinds/dual_pipe_v.h"
#include "trainer/pipeline/kinds/rounds.h"
#include "trainer/pipeline/kinds/zero_bubble_v.h"

namespace lockstep::pipeline {
namespace {

constexpr int64_t kAnyNumber = kMostStages;
/// Of all ranks together; more would take gigabytes.
constexpr int64_t kMostActions = int64_t{1} << 24;

constexpr ScheduleKind kKinds[] = {
    {"GPipe", 1, 1, gpipe, "all forwards, then all backwards"},
    {"1F1B", 1, 1, one_forward_one_backward, "a backward as soon as there is one, then forward and backward in turn"},
    {"Interleaved1F1B", 2, kAnyNumber, interleaved, "1F1B over several stages per rank"},
    {"ZBH1", 1, 1, zero_bubble_h1, "1F1B with weight gradients deferred into the bubble, in its memory"},
    {"InterleavedZeroBubble", 2, kAnyNumber, interleaved_zero_bubble, "the same over several stages per rank"},
    {"ZBVZeroBubble", 2, 2, zero_bubble_v, "stages down and up again, no gaps where F, I and W take equally long"},
    {"DualPipeV", 2, 2, dual_pipe_v, "the same placement, forwards beside backwards"},
};

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& kind : kKinds) all.emplace_back(kind.name);
  return all;
}

/// The name that was meant, whatever its case.
std::string suggestion(std::string_view name) {
  std::vector<std::string> candidates;
  for (const auto& kind : kKinds) candidates.push_back(lower(kind.name));
  const auto close = nearest(lower(name), candidates);
  return close ? fmt::format(" Did you mean {}?", schedule_kind(*close).name) : "";
}

void require_at_least_one(const ScheduleKind& kind, const char* what, int64_t number, int64_t most) {
  if (number < 1 || number > most) fail<BadInput>("{}: {} {}, must be from 1 to {}.", kind.name, number, what, most);
}

void require_stages_per_rank(const ScheduleKind& kind, int64_t stages) {
  if (kind.most_stages == kAnyNumber) return;
  if (stages != kind.most_stages)
    fail<BadInput>("{} has {} {} per rank, not {}. {}", kind.name, kind.most_stages,
                   kind.most_stages == 1 ? "stage" : "stages", stages,
                   kind.most_stages == 1 ? "Interleaved1F1B and InterleavedZeroBubble have any number."
                                         : "They stand at equal distances from both ends.");
}

void require_sizes(const ScheduleKind& kind, const PipelineSize& size) {
  require_at_least_one(kind, "ranks", size.ranks, kMostRanks);
  require_at_least_one(kind, "stages per rank", size.stages_per_rank, kMostStages);
  require_at_least_one(kind, "microbatches", size.microbatches, kMostMicrobatches);
  require_stages_per_rank(kind, size.stages_per_rank);
  const int64_t stages = size.ranks * size.stages_per_rank;
  if (stages > kMostStages)
    fail<BadInput>("{}: {} ranks with {} stages each have {}, must be at most {}.", kind.name, size.ranks,
                   size.stages_per_rank, stages, kMostStages);
  if (3 * stages * size.microbatches > kMostActions)
    fail<BadInput>("{}: {} stages with {} microbatches are more actions than a schedule holds ({} at most).", kind.name,
                   stages, size.microbatches, kMostActions);
}

}  // namespace

std::span<const ScheduleKind> schedule_kinds() { return kKinds; }

const ScheduleKind& schedule_kind(std::string_view name) {
  const auto same = [&](const ScheduleKind& kind) { return lower(kind.name) == lower(name); };
  const auto* kind = std::find_if(std::begin(kKinds), std::end(kKinds), same);
  if (kind == std::end(kKinds))
    fail<BadInput>("{} is not a pipeline schedule.{} The schedules are {}.", name, suggestion(name),
                   fmt::join(names(), ", "));
  return *kind;
}

Schedule make_schedule(std::string_view name, PipelineSize size) {
  const auto& kind = schedule_kind(name);
  require_sizes(kind, size);
  auto schedule = kind.make(size);
  schedule.name = kind.name;
  return schedule;
}

}  // namespace lockstep::pipeline
