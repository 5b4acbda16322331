#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/curves/curve_numbers.h"
#include "tools/lockstep/reports/curves/curve_plot.h"
#include "tools/lockstep/reports/curves/curves_page.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

using nlohmann::ordered_json;

std::vector<RunCurves> read_runs(const std::vector<std::string>& folders) {
  if (folders.size() > kMostRuns)
    fail<BadInput>("{} runs are too many for one page; {} at most can be told apart.", folders.size(), kMostRuns);
  std::vector<RunCurves> runs;
  for (const auto& folder : folders) {
    std::error_code error;
    for (const auto& run : runs)
      if (std::filesystem::equivalent(run.folder, folder, error))
        fail<BadInput>("{} and {} are the same folder.", run.folder, folder);
    runs.push_back(read_run(folder));
  }
  name_runs(runs);
  return runs;
}

ordered_json to_json(const CurveNumbers& numbers) {
  const auto point = [](const std::optional<std::pair<int64_t, double>>& at) {
    return at ? ordered_json{{"step", at->first}, {"value", at->second}} : ordered_json();
  };
  return {{"first", point(numbers.first)},
          {"last", point(numbers.last)},
          {"lowest", point(numbers.lowest)},
          {"highest", point(numbers.highest)}};
}

ordered_json to_json(const RunCurves& run) {
  auto fields = ordered_json::object();
  for (const auto& [name, curve] : run.fields) fields[name] = to_json(numbers_of(curve));
  return {{"folder", run.folder},
          {"steps", run.steps.size()},
          {"first_step", run.steps.front()},
          {"last_step", run.steps.back()},
          {"fields", fields}};
}

/// "-" where a run does not say it.
template <class Point>
std::string text_of(const std::optional<Point>& value, Unit unit) {
  if (!value) return "-";
  if constexpr (std::is_same_v<Point, double>)
    return value_text(*value, unit);
  else
    return value_text(value->second, unit);
}

void print_runs(const std::vector<RunCurves>& runs) {
  size_t width = 3;
  for (const auto& run : runs) width = std::max(width, run.name.size());
  print_out("{:<{}} {:>13} {:>19} {:>10} {:>6} {:>12}\n", "run", width, "steps", "loss", "tokens/s", "MFU",
            "peak memory");
  for (const auto& run : runs) {
    const auto loss = numbers_of(run.curve("loss"));
    print_out("{:<{}} {:>13} {:>19} {:>10} {:>6} {:>12}\n", run.name, width,
              fmt::format("{} to {}", run.steps.front(), run.steps.back()),
              text_of(loss.first, Unit::kNumber) + " to " + text_of(loss.last, Unit::kNumber),
              text_of(mean_of(run.curve("tokens_per_second")), Unit::kCount),
              text_of(mean_of(run.curve("mfu")), Unit::kShare),
              text_of(numbers_of(peak_memory(run)).last, Unit::kBytes));
  }
}

}  // namespace

ExitCode run_report(const ReportOptions& options) {
  const auto runs = read_runs(options.folders);
  const auto page =
      options.html.empty() ? (std::filesystem::path(runs.front().folder) / "report.html").string() : options.html;
  write_file_atomically(page, curves_page(runs));
  print_runs(runs);
  print_out("wrote {}\n", page);
  auto rows = ordered_json::array();
  for (const auto& run : runs) rows.push_back(to_json(run));
  write_json(options.output, {{"page", page}, {"runs", rows}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
