#include "tools/lockstep/schedule/schedule_arguments.h"

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "trainer/pipeline/action.h"

namespace lockstep::tool {
namespace {

CLI::Range from_one_to(int64_t most) { return {int64_t{1}, most}; }

}  // namespace

const char* const kScheduleExamples =
    "lockstep schedule 1F1B --ranks 4 --microbatches 8\n"
    "  lockstep schedule ZBVZeroBubble --ranks 4 --microbatches 8 --times F=1,B=2.2,I=1.2,W=1 --html zbv.html\n"
    "  lockstep schedule all --ranks 4 --microbatches 8\n"
    "  lockstep schedule --file schedule.csv\n\n"
    "docs/pipeline.md says what the schedules are. Exit code 2 for one that cannot be carried out.";

void add_schedule_options(CLI::App& command, ScheduleOptions& options) {
  command
      .add_option(
          "name", options.name,
          "GPipe, 1F1B, Interleaved1F1B, ZBH1, InterleavedZeroBubble, ZBVZeroBubble or DualPipeV; all: a line for "
          "each")
      ->type_name("NAME");
  command.add_option("--ranks", options.ranks, "Ranks of the pipeline")
      ->type_name("N")
      ->check(from_one_to(pipeline::kMostRanks));
  command.add_option("--microbatches", options.microbatches, "Microbatches of a step")
      ->type_name("N")
      ->check(from_one_to(pipeline::kMostMicrobatches));
  command
      .add_option("--stages-per-rank", options.stages_per_rank,
                  "Without it as few as the schedule has, 2 where it can have several")
      ->type_name("N")
      ->check(from_one_to(pipeline::kMostStages));
  command.add_option("--file", options.file, "Instead of NAME: a schedule of PyTorch's or torchtitan's (csv)")
      ->type_name("FILE");
  command
      .add_option("--times", options.times,
                  "What actions take, in any unit; T from one rank to another (F=1,B=2,I=1,W=1,T=0)")
      ->type_name("F=1,...");
  command.add_option("--columns", options.columns, "Width of the picture (120)")
      ->type_name("N")
      ->check(CLI::Range(int64_t{40}, int64_t{100000}));
  command
      .add_option("--csv", options.csv, "Write the schedule to FILE, for torchtitan's pipeline_parallel_schedule_csv")
      ->type_name("FILE");
  command.add_option("--html", options.html, "Write a page with a drawing to FILE")->type_name("FILE");
}

ScheduleOptions checked(const ScheduleOptions& options) {
  const bool has_file = !options.file.empty();
  if (options.name.empty() == !has_file)
    fail<BadInput>(
        "lockstep schedule needs {}: lockstep schedule 1F1B --ranks 4 --microbatches 8, or lockstep schedule "
        "--file FILE.",
        has_file ? "a name or a file, not both" : "a schedule");
  if (!has_file && !(options.ranks && options.microbatches))
    fail<BadInput>("{} is needed: how many {} the schedule is for.", options.ranks ? "--microbatches" : "--ranks",
                   options.ranks ? "microbatches" : "ranks");
  if (has_file && (options.ranks || options.microbatches || options.stages_per_rank))
    fail<BadInput>("--ranks, --microbatches and --stages-per-rank are what the file says; leave them out.");
  if (options.name == "all" && !(options.csv.empty() && options.html.empty()))
    fail<BadInput>("--csv and --html are for one schedule; name it instead of all.");
  return options;
}

}  // namespace lockstep::tool
