#include <nlohmann/json.hpp>

#include "tools/bench/dispatch_rows.h"
#include "tools/bench/numerics_rows.h"
#include "tools/bench/rng_rows.h"
#include "tools/bench/step_rows.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/json_output.h"

namespace lockstep::tool {
namespace {

using bench::BenchRow;

std::vector<BenchRow> numerics() {
  auto rows = bench::numerics_rows();
  for (auto& row : bench::canonical_step_rows()) rows.push_back(std::move(row));
  return rows;
}

std::vector<BenchRow> measure(const std::string& name) {
  if (name == "dispatch") return bench::dispatch_rows();
  if (name == "numerics") return numerics();
  if (name == "step") return bench::step_rows();
  return bench::rng_rows();
}

nlohmann::ordered_json json_of(const BenchRow& row) {
  return {{"name", row.name},   {"ours", row.ours},
          {"peer", row.peer},   {"peer_name", row.peer_name},
          {"ratio", row.ratio}, {"ratio_upper", row.ratio_upper},
          {"unit", row.unit}};
}

}  // namespace

ExitCode run_bench(const BenchOptions& options) {
  if (!options.output.quiet) fmt::print(stderr, "Measuring in pairs on one thread ...\n");
  auto rows = nlohmann::ordered_json::array();
  fmt::print("{:<26} {:>10} {:>10}  {:<10} {:>8} {:>14}  {}\n", "name", "ours", "peer", "unit", "ratio", "95 % at most",
             "peer");
  for (const auto& row : measure(options.name)) {
    fmt::print("{:<26} {:>10.4g} {:>10.4g}  {:<10} {:>8.3f} {:>14.3f}  {}\n", row.name, row.ours, row.peer, row.unit,
               row.ratio, row.ratio_upper, row.peer_name);
    rows.push_back(json_of(row));
  }
  write_json(options.output, {{"rows", rows}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
