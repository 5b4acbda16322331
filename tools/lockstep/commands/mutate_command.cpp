#include <ATen/Parallel.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/elementary/floating_environment.h"
#include "core/files/atomic_file.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/mutation_report.h"

namespace lockstep::tool {
namespace {

/// What the targets are of.
bool is_full(const MutateOptions& options) {
  const MutateOptions usual;
  return options.of_class.empty() && !options.seconds && options.seed == usual.seed && options.each == usual.each;
}

void show_progress(const trainer::MutationScore& score, const trainer::Trial& trial) {
  const auto& all = score.all;
  if (!trial.is_equivalent && !trial.is_caught()) print_err("\nSURVIVED  {}\n", trial.mutant.text());
  print_err("\r{} mutants, {} equivalent, {} of {} caught, {} named", all.mutants, all.equivalent, all.caught,
            all.that_count(), all.exact);
}

std::string command_of(const MutateOptions& options) {
  if (is_full(options)) return "lockstep mutate";
  auto text = fmt::format("lockstep mutate --seed {} --each {}", options.seed, options.each);
  if (!options.of_class.empty()) text += " --class " + options.of_class;
  return text;
}

/// A full run in the project's tree writes its pages, unless it is told to write others.
void choose_pages(MutateOptions& options) {
  const bool is_here = std::filesystem::exists("layers.txt") && std::filesystem::is_directory("docs");
  if (!is_here || !is_full(options)) return;
  if (options.markdown.empty()) options.markdown = "docs/mutation_score.md";
  if (options.output.json.empty()) options.output.json = "docs/mutation_score.json";
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A few mutants cannot tell shares: of those each has to be caught.
bool is_fine(const MutateOptions& options, const trainer::MutationScore& score) {
  if (!is_full(options)) return score.survivors().empty() && score.clean.alarms == 0;
  const auto missed = score.missed_targets();
  for (const auto& one : missed) print_err("missed: {}\n", one);
  return missed.empty();
}

}  // namespace

ExitCode run_mutate(const MutateOptions& given) {
  check_floating_environment();
  at::set_num_threads(1);
  auto options = given;
  choose_pages(options);
  trainer::MutationOptions wanted;
  wanted.of_class = options.of_class, wanted.seed = options.seed, wanted.mutants_each = options.each;
  if (options.seconds) wanted.seconds = *options.seconds;
  if (!options.output.quiet) wanted.on_trial = show_progress;
  const auto score = trainer::score_mutants(wanted);
  if (!options.output.quiet) print_err("\n");
  print_out("{}", mutation_table(score));
  if (!options.markdown.empty())
    write_file_atomically(options.markdown,
                          mutation_markdown(score, command_of(options), content_of(options.markdown)));
  write_json(options.output, mutation_json(score));
  return is_fine(options, score) ? ExitCode::kFine : ExitCode::kInconsistent;
}

}  // namespace lockstep::tool
