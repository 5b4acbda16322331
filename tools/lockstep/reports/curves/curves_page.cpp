#include "tools/lockstep/reports/curves/curves_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "tools/lockstep/reports/curves/curve_numbers.h"
#include "tools/lockstep/reports/curves/curve_plot.h"
#include "tools/lockstep/reports/page/divergence_plot.h"

namespace lockstep::tool {

static_assert(kMostRuns <= kMostPlotLines);

namespace {

using replay::cell;
using replay::escaped;

constexpr const char* kPageStyle = R"(
h1{font-size:1.6em;margin:0 0 4px}h1,p,td{overflow-wrap:anywhere}.quiet{color:var(--quiet)}
summary{cursor:pointer;padding:3px 0}.legend{margin:4px 0}
)";

/// A number of metrics.jsonl and what it is called beside others of its chart.
struct Field {
  const char* name;
  const char* words;
};

/// Numbers that are looked at together.
struct Group {
  const char* title;
  Unit unit;
  bool from_zero;
  std::vector<Field> fields;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"Loss", Unit::kNumber, false, {{"loss", "mean over tokens"}, {"max_loss", "largest of a rank"}}},
      {"Gradient norm", Unit::kNumber, true, {{"grad_norm", "before clipping"}}},
      {"Learning rate", Unit::kNumber, true, {{"learning_rate", "learning rate"}}},
      {"Tokens a second",
       Unit::kCount,
       true,
       {{"tokens_per_second", "on the mesh alone"}, {"checked_tokens_per_second", "with its check"}}},
      {"Operations a second", Unit::kNumber, true, {{"teraflops", "TFLOP/s"}}},
      {"Share of the peak", Unit::kShare, true, {{"mfu", "MFU"}}},
      {"Time of a step",
       Unit::kSeconds,
       true,
       {{"step_seconds", "whole"},
        {"communication_seconds", "waiting for messages"},
        {"data_seconds", "reading data"}}},
      {"Memory",
       Unit::kBytes,
       true,
       {{"gpu_peak_memory_bytes", "on the GPU, most so far"},
        {"gpu_memory_bytes", "on the GPU, after the step"},
        {"peak_memory_bytes", "most so far"},
        {"memory_bytes", "after the step"},
        {"parameter_bytes", "parameters"},
        {"gradient_bytes", "gradients"},
        {"optimizer_bytes", "optimizer state"},
        {"other_bytes", "all else"}}}};
  return all;
}

bool has_numbers(const StepCurve& curve) { return numbers_of(curve).first.has_value(); }

std::string charts_of_one(const RunCurves& run) {
  std::string html;
  for (const auto& group : groups()) {
    Chart chart{group.title, group.unit, group.from_zero, {}};
    for (const auto& field : group.fields)
      if (const auto& curve = run.curve(field.name); has_numbers(curve)) chart.lines.push_back({field.words, &curve});
    if (!chart.lines.empty()) html += chart_html(chart);
  }
  return html;
}

/// A run has the same colour in all of them, and its place where it lacks a number.
std::string charts_of_many(std::span<const RunCurves> runs) {
  std::string html;
  for (const auto& group : groups())
    for (const auto& field : group.fields) {
      const auto title = group.fields.size() > 1 ? fmt::format("{}: {}", group.title, field.words) : group.title;
      Chart chart{title, group.unit, group.from_zero, {}};
      for (const auto& run : runs) chart.lines.push_back({run.name, &run.curve(field.name)});
      const bool has_any = std::ranges::any_of(chart.lines, [](const auto& line) { return has_numbers(*line.curve); });
      if (has_any) html += chart_html(chart);
    }
  return html;
}

std::string last_text(const StepCurve& curve, Unit unit) {
  const auto last = numbers_of(curve).last;
  return last ? value_text(last->second, unit) : "not known";
}

std::string mean_text(const StepCurve& curve, Unit unit) {
  const auto mean = mean_of(curve);
  return mean ? value_text(*mean, unit) : "not known";
}

std::string runs_table(std::span<const RunCurves> runs) {
  std::string rows;
  for (const auto& run : runs)
    rows += "<tr>" + cell("run", escaped(run.name)) +
            cell("steps", fmt::format("{} to {}", run.steps.front(), run.steps.back())) +
            cell("last loss", last_text(run.curve("loss"), Unit::kNumber)) +
            cell("mean tokens/s", mean_text(run.curve("tokens_per_second"), Unit::kCount)) +
            cell("mean MFU", mean_text(run.curve("mfu"), Unit::kShare)) +
            cell("peak memory", last_text(peak_memory(run), Unit::kBytes)) + cell("job", escaped(run.job)) + "</tr>\n";
  return replay::table({"run", "steps", "last loss", "mean tokens/s", "mean MFU", "peak memory", "job"}, rows);
}

}  // namespace

void name_runs(std::span<RunCurves> runs) {
  std::set<std::string> names;
  for (auto& run : runs) {
    auto path = std::filesystem::path(run.folder).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    run.name = path.filename().string();
    names.insert(run.name);
  }
  if (names.size() < runs.size() || names.contains(".") || names.contains(".."))
    for (auto& run : runs) run.name = run.folder;
}

std::string curves_page(std::span<const RunCurves> runs) {
  LOCKSTEP_CHECK(!runs.empty() && runs.size() <= kMostRuns);
  const bool is_one = runs.size() == 1;
  const auto title = is_one ? "Training of " + runs.front().name : fmt::format("{} trainings", runs.size());
  auto html = replay::page_begin(title, std::string(replay::kPartsStyle) + kPlotStyle + kChartStyle + kPageStyle);
  html += fmt::format("<main><h1>{}</h1>\n", escaped(title));
  html += "<p class=\"quiet\">Numbers of each step, from metrics.jsonl; docs/metrics.md says what they are.</p>\n";
  html += runs_table(runs) + "<div class=\"charts\">\n";
  html += is_one ? charts_of_one(runs.front()) : charts_of_many(runs);
  return html + "</div></main>\n" + std::string(replay::kPageEnd);
}

}  // namespace lockstep::tool
