#include <ATen/Parallel.h>

#include <nlohmann/json.hpp>

#include "core/elementary/floating_environment.h"
#include "core/files/atomic_file.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/mutation_report.h"

namespace lockstep::tool {
namespace {

void show_progress(const trainer::MutationScore& score, const trainer::Trial& trial) {
  const auto& all = score.all;
  if (!trial.is_equivalent && !trial.is_caught()) print_err("\nSURVIVED  {}\n", trial.mutant.text());
  print_err("\r{} mutants, {} equivalent, {} of {} caught, {} named", all.mutants, all.equivalent, all.caught,
            all.that_count(), all.exact);
}

std::string command_of(const MutateOptions& options) {
  auto text = fmt::format("lockstep mutate --seed {} --each {}", options.seed, options.each);
  if (!options.of_class.empty()) text += " --class " + options.of_class;
  return text;
}

}  // namespace

ExitCode run_mutate(const MutateOptions& options) {
  check_floating_environment();
  at::set_num_threads(1);
  trainer::MutationOptions wanted;
  wanted.of_class = options.of_class, wanted.seed = options.seed, wanted.mutants_each = options.each;
  if (options.seconds) wanted.seconds = *options.seconds;
  if (!options.output.quiet) wanted.on_trial = show_progress;
  const auto score = trainer::score_mutants(wanted);
  if (!options.output.quiet) print_err("\n");
  print_out("{}", mutation_table(score));
  if (!options.markdown.empty()) write_file_atomically(options.markdown, mutation_markdown(score, command_of(options)));
  write_json(options.output, mutation_json(score));
  const bool is_fine = score.survivors.empty() && score.clean.alarms == 0;
  return is_fine ? ExitCode::kFine : ExitCode::kInconsistent;
}

}  // namespace lockstep::tool
