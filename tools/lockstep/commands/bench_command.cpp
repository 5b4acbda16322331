#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/elementary/instruction_set.h"
#include "core/files/proc_value.h"
#include "tools/bench/gpu/gpu_rows.h"
#include "tools/bench/month/month_bench.h"
#include "tools/bench/rows/collective_rows.h"
#include "tools/bench/rows/dispatch_rows.h"
#include "tools/bench/rows/numerics_rows.h"
#include "tools/bench/rows/peer_rows.h"
#include "tools/bench/rows/process_rows.h"
#include "tools/bench/rows/record_rows.h"
#include "tools/bench/rows/rng_rows.h"
#include "tools/bench/rows/step_rows.h"
#include "tools/bench/rows/verify_rows.h"
#include "tools/bench/scale/forecast_rows.h"
#include "tools/bench/scale/scale_rows.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

using bench::BenchRow;

nlohmann::ordered_json json_of(const BenchRow& row) {
  nlohmann::ordered_json json{{"name", row.name},   {"ours", row.ours},
                              {"peer", row.peer},   {"peer_name", row.peer_name},
                              {"ratio", row.ratio}, {"ratio_upper", row.ratio_upper},
                              {"unit", row.unit}};
  for (const auto& [name, number] : row.facts) json[name] = number;
  for (const auto& [name, numbers] : row.curves) json[name] = numbers;
  return json;
}

/// Prints rows as they come and keeps them for the JSON.
class Table {
 public:
  Table() {
    print_out("{:<30} {:>10} {:>10}  {:<10} {:>8} {:>14}  {}\n", "name", "ours", "peer", "unit", "ratio",
              "95 % at most", "peer");
  }

  void add(const BenchRow& row) {
    print_out("{:<30} {:>10.4g} {:>10.4g}  {:<10} {:>8.3f} {:>14.3f}  {}\n", row.name, row.ours, row.peer, row.unit,
              row.ratio, row.ratio_upper, row.peer_name);
    flush_out();
    rows_.push_back(json_of(row));
  }

  const nlohmann::ordered_json& rows() const { return rows_; }

 private:
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
};

void measure_numerics(const BenchOptions& options, Table& table) {
  const auto cases = bench::numerics_cases(options.rows.value_or(""));
  constexpr double kSeconds = 0.3;  // all rows together take less than two minutes
  const double seconds = options.seconds.value_or(kSeconds);
  for (size_t i = 0; i < cases.size(); ++i) {
    if (!options.output.quiet) print_err("{} of {}: {}\n", i + 1, cases.size(), cases[i].name);
    table.add(cases[i].measure({.seconds = std::min(0.005, seconds), .budget = seconds}));
  }
}

std::vector<BenchRow> measure(const std::string& name) {
  if (name == "dispatch") return bench::dispatch_rows();
  if (name == "step") return bench::step_rows();
  if (name == "record") return bench::record_rows();
  return bench::rng_rows();
}

/// "2026-11-25", UTC.
std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[sizeof "2026-11-25"];
  std::strftime(text, sizeof text, "%F", std::gmtime(&now));
  return text;
}

/// A month in virtual time is no row: it has no peer.
ExitCode print_month(const BenchOptions& options) {
  constexpr int64_t kMonth = 233;
  const auto result = bench::measure_month(options.kills.value_or(kMonth), [&](const std::string& line) {
    if (!options.output.quiet) print_err("{}\n", line);
  });
  print_out(
      "{:.2f} % of {:.1f} days were steps that count: {} steps of 10 s, {} ranks lost, {} restarts, {} steps made "
      "twice\n"
      "a loss is noticed after {:.2f} s, the first step behind it is done {:.2f} s later; a save is waited for {:.4f} "
      "s\n"
      "the last state is {}that of a run that was let alone\n",
      100 * result.effective, result.days, result.steps, result.kills, result.restarts, result.lost_steps,
      result.detection_seconds, result.restart_seconds, result.save_seconds, result.digest_equal ? "" : "NOT ");
  write_json(options.output, {{"effective", result.effective},
                              {"restarts", result.restarts},
                              {"digest_equal", result.digest_equal},
                              {"kills", result.kills},
                              {"steps", result.steps},
                              {"days", result.days},
                              {"lost_steps", result.lost_steps},
                              {"detection_seconds", result.detection_seconds},
                              {"restart_seconds", result.restart_seconds},
                              {"save_seconds", result.save_seconds},
                              {"cpu", proc_value("/proc/cpuinfo", "model name")},
                              {"cores", std::thread::hardware_concurrency()},
                              {"date", today()}});
  return result.digest_equal ? ExitCode::kFine : ExitCode::kInconsistent;
}

/// The front has limited LibTorch before this executable was loaded; run by itself, it is too late.
void check_instructions(const BenchOptions& options) {
  const auto set = name_of(best_instruction_set());
  if (!options.instructions.empty() && options.instructions != set)
    fail<BadInput>("{} instructions: this machine, or an engine that lockstep did not start, runs {}.",
                   options.instructions, set);
}

}  // namespace

ExitCode run_bench(const BenchOptions& options) {
  check_instructions(options);
  require_place(options.hardware);
  if (options.profile) return print_profile(options.output);
  if (options.name == "month") return print_month(options);
  if (!options.output.quiet) print_err("Measuring in pairs ...\n");
  const double seconds = options.seconds.value_or(1);
  Table table;
  const auto add = [&](const BenchRow& row) { table.add(row); };
  if (options.name == "numerics") {
    measure_numerics(options, table);
  } else if (options.name == "collectives") {
    bench::measure_collectives(options.rows.value_or("*"), seconds, add);
  } else if (options.name == "peers") {
    bench::measure_peers({options.rows.value_or("*"), options.seconds.value_or(10), options.device}, add);
  } else if (options.name == "forecast") {
    bench::measure_forecast(options.rows.value_or("*"), seconds, options.hardware, add);
  } else if (options.name == "scale") {
    bench::measure_scale(options.rows.value_or("*"), options.seconds.value_or(3), add);
  } else if (options.name == "processes") {
    bench::measure_processes(options.rows.value_or("*"), seconds, add);
  } else if (options.name == "verify") {
    bench::measure_verify(options.rows.value_or("*"), add);
  } else if (options.name == "gpu") {
    bench::measure_gpu(options.rows.value_or("*"), add);
  } else {
    for (const auto& row : measure(options.name)) table.add(row);
  }
  write_json(options.output, {{"cpu", proc_value("/proc/cpuinfo", "model name")},
                              {"cores", std::thread::hardware_concurrency()},
                              {"date", today()},
                              {"instructions", name_of(best_instruction_set())},
                              {"rows", table.rows()}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
