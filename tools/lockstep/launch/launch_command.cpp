#include <nlohmann/json.hpp>

#include "core/interruption.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/launch/launch_result.h"
#include "tools/lockstep/launch/launched_ranks.h"
#include "tools/lockstep/reports/flight_report.h"

namespace lockstep::tool {

ExitCode run_launch(const LaunchOptions& options) {
  const InterruptionHandler handler;
  const LaunchResult result(options.command);
  LaunchedRanks ranks(options);
  ranks.wait();
  print_err("{}", ranks.reports());
  const auto code = ranks.code();
  if (code == ExitCode::kFine) return code;
  if (ranks.lost_one()) report_loss(ranks.stories());
  result.add("ranks", to_json(ranks.stories()));
  return code;
}

}  // namespace lockstep::tool
