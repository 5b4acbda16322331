#include "tools/lockstep/commands/met_processes.h"

#include <nlohmann/json.hpp>

#include "tools/lockstep/commands.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

/// Null: one process.
trainer::Processes join(const Output& output, const trainer::Job& job, const trainer::Facts& facts, int64_t ranks) try {
  return trainer::join_processes(launcher_here(), environment_variable, job.comm, facts, ranks);
} catch (const trainer::Disagreement& error) {
  nlohmann::ordered_json values;
  for (const auto& [rank, value] : error.values()) values[std::to_string(rank)] = value;
  if (launcher_here().launch.rank == 0)
    write_json(output, {{"agreed", false}, {"key", error.name()}, {"values", values}});
  throw;
}

}  // namespace

trainer::Processes meet(const Output& output, const trainer::Job& job, const std::function<trainer::Facts()>& facts,
                        int64_t ranks) {
  trainer::Processes processes;
  if (!launcher_here().launch.simulated) processes = join(output, job, facts(), ranks);
  if (job.training.device == "cuda") trainer::use_gpus(processes, job.comm);
  return processes;
}

}  // namespace lockstep::tool
