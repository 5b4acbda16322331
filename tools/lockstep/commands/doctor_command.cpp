#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/numerics_version.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/doctor_report.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

std::string_view word(Health health) {
  switch (health) {
    case Health::kFine:
      return "fine";
    case Health::kNote:
      return "note";
    case Health::kBroken:
      return "broken";
  }
  fail<InternalError>("health out of range");
}

}  // namespace

ExitCode run_doctor(const DoctorOptions& options) {
  const auto findings = examine_machine();
  auto rows = nlohmann::ordered_json::array();
  bool healthy = true;
  for (const auto& finding : findings) {
    print_out("{:<6}  {:<13} {}\n", word(finding.health), finding.name, finding.text);
    rows.push_back({{"name", finding.name}, {"health", word(finding.health)}, {"text", finding.text}});
    for (const auto& [name, number] : finding.numbers) rows.back()[name] = number;
    healthy = healthy && finding.health != Health::kBroken;
  }
  write_json(options.output,
             {{"rows", rows}, {"numerics_version", kNumericsVersion}, {"verdict", healthy ? "pass" : "fail"}});
  return healthy ? ExitCode::kFine : ExitCode::kInternal;
}

}  // namespace lockstep::tool
