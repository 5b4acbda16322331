#include "tools/lockstep/reports/dry_run_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/verify/price_report.h"
#include "tools/lockstep/schedule/schedule_facts.h"
#include "trainer/pipeline/pictures/text_picture.h"

namespace lockstep::tool {
namespace {

using Json = nlohmann::ordered_json;
constexpr int64_t kPictureColumns = 120;
using trainer::DryRun, trainer::RankClass;

double mebibytes(double bytes) { return bytes / (1 << 20); }

std::string state_text(const DryRun& dry) {
  const auto [least, most] =
      std::minmax_element(dry.classes.begin(), dry.classes.end(),
                          [](const RankClass& a, const RankClass& b) { return a.state_bytes < b.state_bytes; });
  const double low = mebibytes(least->state_bytes), high = mebibytes(most->state_bytes);
  return low < high ? fmt::format("{:.1f} to {:.1f}", low, high) : fmt::format("{:.1f}", low);
}

void print_collectives(const DryRun& dry) {
  print_out("{:<13} {:<15} {:>9} {:>13}\n", "axis", "collective", "per step", "MiB sent");
  for (const auto& [axis, kinds] : dry.traffic.by_axis())
    for (size_t kind = 0; kind < kCollectiveKinds; ++kind)
      if (kinds[kind].count > 0)
        print_out("{:<13} {:<15} {:>9} {:>13.3f}\n", axis, to_text(static_cast<CollectiveKind>(kind)),
                  kinds[kind].count, mebibytes(kinds[kind].bytes));
}

/// A row per class; MiB per kind of collective, those that occur.
void print_classes(const DryRun& dry) {
  std::vector<CollectiveKind> kinds;
  for (size_t kind = 0; kind < kCollectiveKinds; ++kind)
    if (dry.traffic.total(static_cast<CollectiveKind>(kind)).count > 0)
      kinds.push_back(static_cast<CollectiveKind>(kind));
  print_out("{:<16} {:>5} {:>10}", "ranks", "count", "MiB held");
  for (const auto kind : kinds) print_out(" {:>14}", to_text(kind));
  print_out("\n");
  for (const auto& each : dry.classes) {
    print_out("{:<16} {:>5} {:>10.3f}", range_text(each.ranks, 16), each.ranks.size(), mebibytes(each.state_bytes));
    for (const auto kind : kinds) print_out(" {:>14.3f}", mebibytes(each.sent_of(kind)));
    print_out("\n");
  }
}

/// Bubble, activations, blocks and a picture; the drawing of --html.
Json report_pipeline(const TrainOptions& options, const trainer::PipelinePlan& plan) {
  const auto facts = facts_of(plan.schedule, {});
  print_out("\npipeline {}; times {}; first blocks of stages {}\n", facts.title(), times_text(facts.durations),
            fmt::join(plan.first_blocks, " "));
  write_out(rank_table(facts) + "\n" + pipeline::text_picture(facts.schedule, facts.timeline, kPictureColumns));
  if (!options.html.empty()) write_file_atomically(options.html, schedule_page(facts));
  auto json = json_of(facts);
  json["first_blocks"] = plan.first_blocks;
  return json;
}

Json unhonoured_json(const TrainOptions& options) {
  auto rows = Json::array();
  for (const auto& each : options.unhonoured)
    rows.push_back({{"key", each.key},
                    {"value", each.value},
                    {"where", each.where},
                    {"instead", each.instead},
                    {"refused", each.refused}});
  return rows;
}

Json classes_json(const DryRun& dry) {
  auto classes = Json::array();
  for (const auto& each : dry.classes) {
    auto sent = Json::array();
    for (const auto& [axis, kinds] : each.sent)
      for (size_t kind = 0; kind < kCollectiveKinds; ++kind)
        if (dry.traffic.on(axis, static_cast<CollectiveKind>(kind)).count > 0)
          sent.push_back(
              {{"axis", axis}, {"collective", to_text(static_cast<CollectiveKind>(kind))}, {"bytes", kinds[kind]}});
    classes.push_back({{"ranks", each.ranks}, {"state_bytes", each.state_bytes}, {"sent", sent}});
  }
  return classes;
}

}  // namespace

std::string range_text(const std::vector<int>& numbers, size_t width) {
  std::string text;
  for (size_t first = 0; first < numbers.size();) {
    size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    auto part = fmt::format("{}{}", text.empty() ? "" : ",", numbers[first]);
    if (last > first) part += fmt::format("-{}", numbers[last]);
    const size_t rest = last + 1 < numbers.size() ? 3 : 0;
    if (text.size() + part.size() + rest > width) return text + "...";
    text += part;
    first = last + 1;
  }
  return text;
}

ExitCode report_dry_run(const TrainOptions& options, const trainer::Job& job) {
  const auto dry = trainer::dry_run(job);
  const auto mesh = trainer::mesh_of(job).text();
  print_out("model {} {}: {}\n", job.model.name, job.model.flavor, dry.sizes);
  print_out("mesh {}: {} parameters, {} MiB of parameters and optimizer state on a rank\n", mesh, dry.parameters,
            state_text(dry));
  const bool canonical = job.numerics.is_canonical();
  const auto prices = trainer::price_table(dry, canonical ? trainer::dry_run(trainer::with_native_numerics(job)) : dry);
  if (canonical)
    print_prices(prices);
  else
    print_collectives(dry);
  if (dry.classes.size() > 1) print_classes(dry);
  const auto pipeline = dry.pipeline.stages() > 1 ? report_pipeline(options, dry.pipeline) : Json();
  if (!canonical) print_gathered(dry.traffic.implicit_gathers());
  Json json{{"mesh", mesh},
            {"sizes", dry.sizes},
            {"parameters", dry.parameters},
            {"state_bytes_per_rank", dry.classes[0].state_bytes},
            {"numerics", job.numerics.mode},
            {"collectives", prices_json(prices)},
            {"gathered", gathered_json(prices.gathered)},
            {"classes", classes_json(dry)},
            {"not_honoured", unhonoured_json(options)}};
  if (!pipeline.is_null()) json["pipeline"] = pipeline;
  write_json(options.output, json);
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
