#include "tools/lockstep/fuzz_arguments.h"

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "tools/lockstep/argument_checks.h"

namespace lockstep::tool {

const char* const kFuzzExamples =
    "lockstep fuzz ops --seconds 60 --seed 7\n"
    "  lockstep fuzz ops --op scaled_dot_product_attention\n"
    "  lockstep fuzz programs --cases 1000 --json fuzz.json\n"
    "  lockstep fuzz ops --case mm/layouts@5eed:100\n"
    "\nExit code 3 where something fails; docs/fuzz.md tells what is compared, and how to use it in CI.";

const char* const kShrinkExamples =
    "lockstep shrink outputs/verify/case-1.h5\n"
    "  lockstep shrink case-1.h5 --seconds 10 --output smallest.h5\n"
    "\nWhat is left is run again by lockstep replay --case.";

void add_fuzz_options(CLI::App& command, FuzzOptions& options) {
  command.add_option("kind", options.kind, "What cases are made of: ops, programs, layouts or steps")
      ->required()
      ->type_name("KIND");
  command.add_option("--seconds", options.seconds, "Begin no case later (60)")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--cases", options.cases, "Try so many, however long it takes")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->excludes("--seconds");
  command.add_option("--seed", options.seed, "Draws the cases: the same everywhere; without it another each time")
      ->type_name("S");
  command
      .add_option("--op", options.op,
                  "Of ops: this one alone, one of its checks, or one of all ops (mm, mm/gradients, /gradients)")
      ->type_name("NAME");
  auto* one = command
                  .add_option("--case", options.one_case,
                              "Run this case alone: as a failure prints it, the file that it wrote, or a folder of "
                              "such files")
                  ->type_name("CASE");
  for (const char* other : {"--seconds", "--cases", "--seed", "--op"}) one->excludes(other);
  command.add_flag("--first", options.first_only, "Stop at the first failure");
  command.add_option("--jobs", options.jobs, "Processes at once (one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--record", options.record,
                  "Of ops, all of them: write how often each was compared to FILE, if nothing fails; lockstep rules "
                  "shows tests/rule_cases.json")
      ->type_name("FILE");
  command.add_option("--failures", options.failures, "Folder for the case files of failures (fuzz-failures)")
      ->type_name("DIR");
}

void add_shrink_options(CLI::App& command, ShrinkOptions& options) {
  command.add_option("case", options.case_file, "Case of an op, which a finding of verify or train --verify wrote")
      ->required()
      ->type_name("FILE");
  command.add_option("--output", options.smallest, "Where the smallest case goes (beside the case, .smallest.h5)")
      ->type_name("FILE");
  command.add_option("--seconds", options.seconds, "Try for so long (60)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0));
}

/// What names a part of the rules does not tell of all.
void require_whole_table(const FuzzOptions& fuzz) {
  if (fuzz.record.empty()) return;
  if (fuzz.kind != "ops" || !fuzz.op.empty() || !fuzz.one_case.empty())
    fail<BadInput>("--record tells of the whole table: it goes with lockstep fuzz ops, without --op and --case.");
}

FuzzOptions checked(const FuzzOptions& fuzz) {
  require_known(fuzz.kind, "kind", {"ops", "programs", "layouts", "steps"});
  if (!fuzz.op.empty() && fuzz.kind != "ops") fail<BadInput>("--op chooses among ops; {} have none.", fuzz.kind);
  require_whole_table(fuzz);
  return fuzz;
}

const char* const kMutateExamples = "lockstep mutate --class M4\n  lockstep mutate --seconds 60 --json score.json";

void add_mutate_options(CLI::App& command, MutateOptions& options) {
  command.add_option("--class", options.of_class, "One class of faults, M1 to M21; without it all")->type_name("CLASS");
  command.add_option("--seed", options.seed, "Draws places and changes (1)")->type_name("N");
  command.add_option("--each", options.each, "Mutants of each class (48)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
  command.add_option("--seconds", options.seconds, "Begin no mutant later")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--markdown", options.markdown,
                  "Write the tables as a page to FILE; a full run in the project's tree: docs/mutation_score.md, and "
                  "docs/mutation_score.json")
      ->type_name("FILE");
}

}  // namespace lockstep::tool
