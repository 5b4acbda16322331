#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/collective_kind.h"
#include "core/files/atomic_file.h"
#include "replay/store/recording_folder.h"
#include "replay/view/chrome_trace.h"
#include "replay/view/timeline_page.h"
#include "replay/view/trace_diff.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/timeline_facts.h"

namespace lockstep::tool {
namespace {

using replay::RecordingFolder;
using replay::StepRecording;

/// The ranks or steps that are asked for, of those that are there.
template <class T>
std::vector<T> chosen(std::vector<T> all, const std::optional<int64_t>& wanted, const char* what,
                      const std::string& folder) {
  if (!wanted) return all;
  const auto found = std::find(all.begin(), all.end(), *wanted);
  if (found == all.end()) fail<BadInput>("{} has no {} {}; it has {}.", folder, what, *wanted, fmt::join(all, ", "));
  return {*found};
}

ExitCode list(const TraceOptions& options) {
  const RecordingFolder folder(options.folder);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  print_out("{:>5} {:>8} {:>6} {:>9} {:>12}  {}\n", "rank", "step", "state", "complete", "bytes", "file");
  for (const int rank : folder.ranks())
    for (const int64_t step : folder.steps(rank)) {
      const auto& entry = folder.entry(rank, step);
      print_out("{:>5} {:>8} {:>6} {:>9} {:>12}  {}\n", rank, entry.step, entry.has_state ? "yes" : "-",
                entry.complete ? "yes" : "no", entry.bytes, entry.file);
      rows.push_back({{"rank", rank},
                      {"step", entry.step},
                      {"state", entry.has_state},
                      {"complete", entry.complete},
                      {"bytes", entry.bytes},
                      {"file", entry.file}});
    }
  const auto damage = folder.damage();
  for (const auto& line : damage) print_out("DAMAGED  {}\n", line);
  for (const auto& line : folder.leftovers()) print_out("left over  {}\n", line);
  write_json(options.output, {{"steps", rows}, {"damage", damage}});
  if (rows.empty() && damage.empty())
    fail<BadInput>("{} is an empty recording: no step was written into it.", options.folder);
  return damage.empty() ? ExitCode::kFine : ExitCode::kFile;
}

void print_result(const StepRecording& recording, const replay::RecordedResult& result) {
  static constexpr const char* kKinds[] = {"", "alias", "pending", "unwritten"};
  print_out(
      "    {} {}\n", recording.names[result.layout],
      result.kind == replay::ResultKind::kDigest ? result.digest.text() : kKinds[static_cast<size_t>(result.kind)]);
}

void print_collective(const StepRecording& recording, const replay::RecordedCollective& collective) {
  print_out("  collective {} of {}: {} on {} in {}, purpose {:08x}, group {:016x}\n", collective.number,
            recording.names[collective.mesh], kCollectiveNames[collective.kind], recording.names[collective.axis],
            text_of(collective.id, recording), collective.purpose, collective.group);
  for (uint32_t p = 0; p < collective.pieces; ++p) {
    const auto& piece = recording.pieces[collective.first_piece + p];
    print_out("    from rank {} tensor {}: {} bytes {}\n", piece.source, piece.tensor, piece.bytes,
              piece.digest.text());
  }
}

void print_step(const StepRecording& recording) {
  print_out("rank {} of {}, step {}: {} ops, {} collectives, {} bytes of payload{}\n", recording.rank, recording.world,
            recording.step, recording.ops.size(), recording.collectives.size(), recording.payload.size(),
            recording.complete ? "" : "; ended early: " + recording.reason);
  for (const auto& [key, value] : recording.machine) print_out("  {} = {}\n", key, value);
  print_out("  first_sample = {}\n  next_sample = {}\n", recording.first_sample, recording.next_sample);
  for (const auto& scalar : recording.scalars)
    print_out("  {} = {} ({:#018x})\n", scalar.name, std::bit_cast<double>(scalar.bits), scalar.bits);
  if (!recording.state_digest.empty()) print_out("  state_digest = {}\n", recording.state_digest);
  std::multimap<uint32_t, const replay::RecordedResult*> results;
  for (const auto& result : recording.results) results.emplace(result.op, &result);
  for (uint32_t op = 0; op < recording.ops.size(); ++op) {
    print_out("  {}\n", text_of(recording.ops[op].id, recording));
    const auto [first, last] = results.equal_range(op);
    for (auto result = first; result != last; ++result) print_result(recording, *result->second);
  }
  for (const auto& collective : recording.collectives) print_collective(recording, collective);
}

ExitCode dump(const TraceOptions& options) {
  const RecordingFolder folder(options.folder);
  for (const int rank : chosen(folder.ranks(), options.rank, "rank", options.folder))
    for (const auto step : chosen(folder.steps(rank), options.step, "step", options.folder))
      if (!out_has_ended()) print_step(folder.read(rank, step));
  return ExitCode::kFine;
}

/// What both have.
template <class T>
std::vector<T> common(const std::vector<T>& left, const std::vector<T>& right) {
  std::vector<T> both;
  std::set_intersection(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
  return both;
}

void print_diff(const replay::TraceDiff& diff, int rank, int64_t step) {
  print_out("rank {}, step {}: {} results equal, {} differ, {} cannot be compared, {} and {} on one side only\n", rank,
            step, diff.all.same, diff.all.different, diff.all.incomparable, diff.all.only_left, diff.all.only_right);
  if (!diff.numerics.empty()) print_out("  {}\n", diff.numerics);
  if (!diff.is_comparable())
    print_out("  nothing to compare: no result of both is cut alike, or whole, and has a digest\n");
  if (!diff.batch.empty()) print_out("  batch: {}\n", diff.batch);
  if (!diff.state.empty()) print_out("  state after the step: {}\n", diff.state);
  for (const auto& scalar : diff.scalars) print_out("  {}\n", scalar);
  if (!diff.first.empty()) print_out("  first: {}\n", diff.first);
  if (diff.agrees()) return;
  for (const auto& [module, counts] : diff.by_module)
    if (counts.different + counts.only_left + counts.only_right > 0)
      print_out("  {:<40} {:>6} differ of {:>6}, one side only {:>4}\n", module.empty() ? "(no module)" : module,
                counts.different, counts.different + counts.same, counts.only_left + counts.only_right);
}

const char* verdict_of(bool agrees, bool is_comparable) {
  if (!agrees) return "differs";
  return is_comparable ? "equal" : "not comparable";
}

ExitCode compare(const TraceOptions& options) {
  const RecordingFolder left(options.folder), right(options.other);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool agrees = true;
  size_t compared = 0;
  std::vector<std::string> empty;  // of which no result was compared
  for (const int rank : chosen(common(left.ranks(), right.ranks()), options.rank, "rank", "both recordings"))
    for (const auto step :
         chosen(common(left.steps(rank), right.steps(rank)), options.step, "step", "both recordings")) {
      const auto diff = replay::diff(left.read(rank, step), right.read(rank, step));
      print_diff(diff, rank, step);
      agrees = agrees && diff.agrees();
      ++compared;
      if (!diff.is_comparable()) empty.push_back(fmt::format("rank {}, step {}", rank, step));
      rows.push_back({{"rank", rank},
                      {"step", step},
                      {"same", diff.all.same},
                      {"different", diff.all.different},
                      {"incomparable", diff.all.incomparable},
                      {"only_left", diff.all.only_left},
                      {"only_right", diff.all.only_right},
                      {"numerics", diff.numerics},
                      {"batch", diff.batch},
                      {"state", diff.state},
                      {"scalars", diff.scalars},
                      {"first", diff.first}});
    }
  if (compared == 0) fail<BadInput>("{} and {} have no step of one rank in common.", options.folder, options.other);
  write_json(options.output, {{"verdict", verdict_of(agrees, empty.empty())}, {"steps", rows}});
  if (agrees && !empty.empty())
    fail<BadInput>("{} and {} have no result that can be compared in {} of {} steps: {}.", options.folder,
                   options.other, empty.size(), compared, empty.front());
  return agrees ? ExitCode::kFine : ExitCode::kInconsistent;
}

/// One step of the ranks that are asked for: the last one that all of them have, if none is.
std::vector<StepRecording> drawn_ranks(const TraceOptions& options) {
  const RecordingFolder folder(options.folder);
  const auto ranks = chosen(folder.ranks(), options.rank, "rank", options.folder);
  if (ranks.empty()) fail<BadInput>("{} is an empty recording: no step was written into it.", options.folder);
  auto steps = chosen(folder.steps(ranks.front()), options.step, "step", options.folder);
  for (const int rank : ranks) steps = common(steps, chosen(folder.steps(rank), options.step, "step", options.folder));
  if (steps.empty())
    fail<FileError>("{} has no step that is whole on rank {}.", options.folder, fmt::join(ranks, ", "));
  std::vector<StepRecording> recordings;
  for (const int rank : ranks) recordings.push_back(folder.read(rank, steps.back()));
  return recordings;
}

ExitCode draw(const TraceOptions& options) {
  if (options.html.empty() && options.chrome.empty())
    fail<BadInput>("say what to write: --html FILE or --chrome FILE.");
  const auto ranks = drawn_ranks(options);
  if (!options.html.empty())
    write_file_atomically(options.html, replay::timeline_page(ranks, timeline_head(ranks.front())));
  if (!options.chrome.empty()) write_file_atomically(options.chrome, replay::chrome_trace(ranks));
  for (const auto& file : {options.html, options.chrome})
    if (!file.empty()) print_out("wrote {}\n", file);
  return ExitCode::kFine;
}

}  // namespace

ExitCode run_trace(const TraceOptions& options) {
  if (options.action == "ls") return list(options);
  if (options.action == "dump") return dump(options);
  return options.action == "diff" ? compare(options) : draw(options);
}

}  // namespace lockstep::tool
