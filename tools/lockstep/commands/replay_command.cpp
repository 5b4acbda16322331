#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "core/elementary/floating_environment.h"
#include "replay/op_case/case_run.h"
#include "replay/play/op_dump.h"
#include "replay/store/recording_folder.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "trainer/recording/recorded_reference.h"
#include "trainer/recording/replayed_run.h"

namespace lockstep::tool {
namespace {

int rank_of(const ReplayOptions& options, const replay::RecordingFolder& folder) {
  const auto ranks = folder.ranks();
  const bool known = options.rank && std::find(ranks.begin(), ranks.end(), *options.rank) != ranks.end();
  if (options.rank && !known)
    fail<BadInput>("{} has no rank {}; it has {}.", options.folder, *options.rank, fmt::join(ranks, ", "));
  if (!options.rank && ranks.size() != 1)
    fail<BadInput>("{} has ranks {}: say which one with --rank.", options.folder, fmt::join(ranks, ", "));
  return options.rank ? static_cast<int>(*options.rank) : ranks.front();
}

int64_t step_of(const ReplayOptions& options, const replay::RecordingFolder& folder, int rank) {
  const auto steps = folder.steps(rank);
  if (steps.empty()) fail<FileError>("{} has no whole step of rank {}.", options.folder, rank);
  if (!options.step) return steps.back();
  if (std::find(steps.begin(), steps.end(), *options.step) == steps.end())
    fail<BadInput>("{} has no step {} of rank {}; it has {} to {} ({} of them).", options.folder, *options.step, rank,
                   steps.front(), steps.back(), steps.size());
  return *options.step;
}

/// Replays every recorded step from the last state before it up to the one that is asked for.
trainer::ReplayOutcome replay_once(const ReplayOptions& options, const replay::RecordingFolder& folder, int rank,
                                   int64_t step) {
  const int64_t first = folder.first_with_state(rank, step);
  auto recording = folder.read(rank, first);
  trainer::ReplayedRun run(recording, options.changes);
  for (int64_t s = first; s < step; recording = folder.read(rank, ++s)) {
    auto outcome = run.replay(recording);
    if (!outcome.agrees()) return outcome;
  }
  return run.replay(recording, options.break_at.empty() ? options.until : options.break_at);
}

const char* text_of(trainer::ReplayVerdict verdict) {
  return verdict == trainer::ReplayVerdict::kIdentical     ? "identical"
         : verdict == trainer::ReplayVerdict::kWithinBound ? "within bound"
                                                           : "differs";
}

/// The versions stand before the verdict: they are its first explanation.
void print(const trainer::ReplayOutcome& outcome, int rank) {
  if (!outcome.other_numerics.empty()) print_out("{}\n", outcome.other_numerics);
  print_out("rank {}, step {}: ", rank, outcome.step);
  if (outcome.agrees()) {
    print_out("{}: {} ops, {} collectives{}\n", text_of(outcome.verdict), outcome.ops, outcome.collectives,
              outcome.stopped_there ? ", up to the op that was asked for" : "");
  } else {
    print_out("DIFFERS in {} results of {} ops\n", outcome.differing_results, outcome.ops);
    if (outcome.first_difference) print_out("{}\n", outcome.first_difference->text());
  }
  for (const auto& scalar : outcome.differing_scalars) print_out("  {}\n", scalar);
  if (!outcome.is_identical())
    for (const auto& fact : outcome.other_machine) print_out("  machine   {}\n", fact);
  if (!outcome.stopped_by.empty()) print_out("  ended by   {}\n", outcome.stopped_by);
  if (!outcome.ended_early.empty()) print_out("  recorded   up to here: {}\n", outcome.ended_early);
}

nlohmann::ordered_json to_json(const trainer::ReplayOutcome& outcome, int rank) {
  nlohmann::ordered_json difference = nullptr;
  if (outcome.first_difference) {
    const auto& first = *outcome.first_difference;
    difference = {{"op", first.id},           {"what", first.what},
                  {"layouts", first.layouts}, {"recorded", first.expected},
                  {"now", first.found},       {"operands", first.operands}};
  }
  return {{"verdict", text_of(outcome.verdict)},
          {"rank", rank},
          {"step", outcome.step},
          {"ops", outcome.ops},
          {"collectives", outcome.collectives},
          {"differing_results", outcome.differing_results},
          {"differing_scalars", outcome.differing_scalars},
          {"other_machine", outcome.other_machine},
          {"other_numerics", outcome.other_numerics},
          {"ended_early", outcome.ended_early},
          {"first_difference", difference}};
}

void write_damage(const ReplayOptions& options, int rank, int64_t step) {
  write_json(options.output, {{"verdict", "damaged"}, {"rank", rank}, {"step", step}});
}

/// How the differences of several replays compare with the first one's.
void print_repeats(const std::vector<trainer::ReplayOutcome>& outcomes) {
  const auto text = [](const trainer::ReplayOutcome& outcome) {
    return outcome.first_difference ? outcome.first_difference->text() : std::string();
  };
  for (size_t i = 1; i < outcomes.size(); ++i)
    if (text(outcomes[i]) != text(outcomes[0]))
      return print_out("NONDETERMINISTIC  replay {} is not as replay 1\n", i + 1);
  print_out("{} replays, all alike\n", outcomes.size());
}

ExitCode compare(const ReplayOptions& options, const replay::RecordingFolder& folder, int64_t step) {
  const auto verdict = trainer::compare_with_reference(folder, step, options.changes);
  if (!verdict.other_numerics.empty()) print_out("{}\n", verdict.other_numerics);
  print_out("step {}, all ranks, {} one device: {}\n", step, verdict.agrees ? "as" : "not as",
            verdict.agrees ? "every compared value agrees" : "INCONSISTENT");
  if (!verdict.finding.empty()) print_out("{}\n", verdict.finding);
  if (!verdict.is_as_recorded) print_out("and this run is not as the recorded one: {}\n", verdict.deviation);
  write_json(options.output, {{"verdict", verdict.agrees ? "agrees" : "differs"},
                              {"step", step},
                              {"as_recorded", verdict.is_as_recorded},
                              {"ops", verdict.ops},
                              {"other_numerics", verdict.other_numerics},
                              {"finding", verdict.finding}});
  return verdict.agrees && verdict.is_as_recorded ? ExitCode::kFine : ExitCode::kInconsistent;
}

/// An op that was asked for came, and is written if it is to be.
void require_stop(const ReplayOptions& options, const trainer::ReplayOutcome& outcome, int rank) {
  const auto& op = options.break_at.empty() ? options.until : options.break_at;
  if (op.empty()) return;
  if (!outcome.stopped_there) fail<BadInput>("step {} has no op {}; lockstep trace dump lists them.", outcome.step, op);
  print_out("  stopped   {}\n", outcome.op_there);
  if (options.break_at.empty()) return;
  const auto files = replay::break_files(outcome.op_there, rank, outcome.step, outcome.tensors_there);
  for (const auto& path : replay::BreakFolder(options.dump).write(files)) print_out("wrote {}\n", path);
}

ExitCode replay_alone(const ReplayOptions& options, const replay::RecordingFolder& folder, int rank, int64_t step) {
  if (!options.break_at.empty()) replay::BreakFolder{options.dump};  // refused before the work, not after it
  std::vector<trainer::ReplayOutcome> outcomes;
  for (int64_t i = 0; i < options.repeat; ++i) outcomes.push_back(replay_once(options, folder, rank, step));
  print(outcomes.front(), rank);
  require_stop(options, outcomes.front(), rank);
  if (options.repeat > 1) print_repeats(outcomes);
  write_json(options.output, to_json(outcomes.front(), rank));
  const bool agrees = std::all_of(outcomes.begin(), outcomes.end(), [](const auto& o) { return o.agrees(); });
  return agrees ? ExitCode::kFine : ExitCode::kInconsistent;
}

/// What the op of a case gives; errors name the file.
std::optional<Blame> blame_of(const replay::OpCase& one, const std::string& file) {
  try {
    return replay::run_case(one);
  } catch (const BadInput& error) {
    fail<BadInput>("{}: {}", file, error.what());
  } catch (const FileError& error) {
    fail<FileError>("{}: {}", file, error.what());
  }
}

/// One op that verify found, again.
ExitCode run_case(const ReplayOptions& options) {
  const auto one = replay::read_case(options.case_file);
  const auto blame = blame_of(one, options.case_file);
  const bool bits = one.domain == "native" && one.numerics == trainer::kCanonicalMode;
  print_out("{} on {}: {}\n", one.op, one.mesh,
            blame  ? "DIFFERS from one device"
            : bits ? "as on one device, bit by bit"
                   : "as on one device");
  print_out("{}\n", blame ? blame->text() : fmt::format("  once       {}", one.id));
  write_json(options.output, {{"verdict", blame  ? "differs"
                                          : bits ? "identical"
                                                 : "within bound"},
                              {"op", one.op},
                              {"mesh", one.mesh},
                              {"id", one.id},
                              {"finding", blame ? blame->text() : ""}});
  return blame ? ExitCode::kInconsistent : ExitCode::kFine;
}

}  // namespace

ExitCode run_replay(const ReplayOptions& options) {
  check_floating_environment();
  if (!options.case_file.empty()) return run_case(options);
  const replay::RecordingFolder folder(options.folder);
  const bool alone = options.against.empty();
  const int rank = alone ? rank_of(options, folder) : folder.ranks().front();
  const int64_t step = step_of(options, folder, rank);
  try {
    return alone ? replay_alone(options, folder, rank, step) : compare(options, folder, step);
  } catch (const FileError&) {
    write_damage(options, rank, step);
    throw;
  }
}

}  // namespace lockstep::tool
