#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/schedule/schedule_facts.h"
#include "trainer/pipeline/kinds/schedule_kinds.h"
#include "trainer/pipeline/pictures/text_picture.h"
#include "trainer/pipeline/schedule_csv.h"

namespace lockstep::tool {
namespace {

constexpr const char* kRow = "{:<21}  {:>15}  {:>8}  {:>6}  {:>6}  {:>11}\n";

pipeline::PipelineSize size_of(const ScheduleOptions& options, const pipeline::ScheduleKind& kind) {
  return {options.ranks.value_or(1), options.stages_per_rank.value_or(kind.usual_stages),
          options.microbatches.value_or(1)};
}

ScheduleFacts named(const ScheduleOptions& options, const pipeline::Durations& durations) {
  const auto& kind = pipeline::schedule_kind(options.name);
  return facts_of(pipeline::make_schedule(kind.name, size_of(options, kind)), durations);
}

ScheduleFacts read(const ScheduleOptions& options, const pipeline::Durations& durations) {
  auto file = pipeline::read_schedule_csv(options.file);
  auto facts = facts_of(std::move(file.schedule), durations);
  facts.left_out = file.left_out;
  return facts;
}

ExitCode show(const ScheduleOptions& options, const pipeline::Durations& durations) {
  const auto facts = options.file.empty() ? named(options, durations) : read(options, durations);
  print_out("{}; times {}; length {:g}\n", facts.title(), times_text(durations), facts.timeline.length());
  if (facts.left_out > 0)
    print_out("{} cells of communication are left out: it follows from what actions need\n", facts.left_out);
  write_out(rank_table(facts) + "\n" + pipeline::text_picture(facts.schedule, facts.timeline, options.columns));
  if (!options.csv.empty()) write_file_atomically(options.csv, pipeline::to_csv(facts.schedule));
  if (!options.html.empty()) write_file_atomically(options.html, schedule_page(facts));
  if (!options.output.json.empty()) write_json(options.output, json_of(facts));
  return ExitCode::kFine;
}

/// A number of stages' actions or activations in those of a whole rank, so that schedules compare.
std::string in_ranks(double number, int64_t stages_per_rank) {
  return fmt::format("{:g}", number / static_cast<double>(stages_per_rank));
}

nlohmann::ordered_json compare_one(const ScheduleOptions& options, const pipeline::ScheduleKind& kind,
                                   const pipeline::Durations& durations) try {
  const auto size = size_of(options, kind);
  const auto facts = facts_of(pipeline::make_schedule(kind.name, size), durations);
  const int64_t most = *std::max_element(facts.held.of_rank.begin(), facts.held.of_rank.end());
  print_out(kRow, kind.name, size.stages_per_rank, in_ranks(facts.timeline.length(), size.stages_per_rank),
            share_text(facts.timeline.bubble()), share_text(facts.timeline.gaps()),
            in_ranks(static_cast<double>(most), size.stages_per_rank));
  return {{"schedule", kind.name},
          {"stages_per_rank", size.stages_per_rank},
          {"length", facts.timeline.length()},
          {"bubble", facts.timeline.bubble()},
          {"gaps", facts.timeline.gaps()},
          {"most_activations", most}};
} catch (const BadInput& error) {
  print_out("{:<21}  {}\n", kind.name, error.what());
  return {{"schedule", kind.name}, {"refused", error.what()}};
}

/// Stages per rank are for those that have a choice.
ExitCode compare(const ScheduleOptions& options, const pipeline::Durations& durations) {
  print_out("{} ranks, {} microbatches; times {}; length and activations of all stages of a rank together\n",
            *options.ranks, *options.microbatches, times_text(durations));
  print_out(kRow, "schedule", "stages per rank", "length", "bubble", "gaps", "activations");
  auto rows = nlohmann::ordered_json::array();
  for (const auto& kind : pipeline::schedule_kinds()) {
    auto own = options;
    if (kind.most_stages <= 2) own.stages_per_rank.reset();
    rows.push_back(compare_one(own, kind, durations));
  }
  write_json(options.output, {{"ranks", *options.ranks}, {"microbatches", *options.microbatches}, {"schedules", rows}});
  const bool has_any = std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.contains("refused"); });
  return has_any ? ExitCode::kFine : ExitCode::kBadInput;
}

}  // namespace

ExitCode run_schedule(const ScheduleOptions& options) {
  const auto durations =
      options.times.empty() ? pipeline::Durations{} : pipeline::parse_durations(options.times, "--times");
  return options.name == "all" ? compare(options, durations) : show(options, durations);
}

}  // namespace lockstep::tool
