#include "tools/lockstep/commands/met_processes.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

const char* variable(const char* name) { return std::getenv(name); }

}  // namespace

trainer::Launcher this_launcher() { return trainer::detect_launcher(variable); }

trainer::Processes meet(const Output& output, const trainer::Job& job, const trainer::Facts& facts, int64_t ranks) try {
  auto processes = trainer::join_processes(this_launcher(), variable, job.comm, facts, ranks);
  if (job.training.device == "cuda") trainer::use_gpus(processes, job.comm);
  return processes;
} catch (const trainer::Disagreement& error) {
  nlohmann::ordered_json values;
  for (const auto& [rank, value] : error.values()) values[std::to_string(rank)] = value;
  if (this_launcher().launch.rank == 0)
    write_json(output, {{"agreed", false}, {"key", error.name()}, {"values", values}});
  throw;
}

}  // namespace lockstep::tool
