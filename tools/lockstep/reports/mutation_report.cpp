#include "tools/lockstep/reports/mutation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lockstep::tool {
namespace {

using trainer::MutationScore;
using trainer::Trial;

double percent(int64_t part, int64_t whole) {
  return whole == 0 ? 100 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// M2 before M10.
std::vector<std::string> names_in_order(const MutationScore& score) {
  std::vector<std::string> names;
  for (const auto& [name, one] : score.classes) names.push_back(name);
  std::sort(names.begin(), names.end(),
            [](const auto& a, const auto& b) { return std::stoi(a.substr(1)) < std::stoi(b.substr(1)); });
  return names;
}

std::string row(const char* format, const std::string& name, const MutationScore::OfClass& one) {
  return fmt::format(fmt::runtime(format), name, one.text, one.mutants, one.equivalent, one.caught,
                     percent(one.caught, one.that_count()), one.exact, percent(one.exact, one.caught));
}

std::string rows(const MutationScore& score, const char* format) {
  std::string text;
  for (const auto& name : names_in_order(score)) text += row(format, name, score.classes.at(name));
  return text + row(format, "all", score.all);
}

std::string seen_by(const MutationScore& score, const char* format) {
  const auto count = score.all.that_count();
  auto text =
      fmt::format(fmt::runtime(format), "lockstep --verify", score.all.caught, percent(score.all.caught, count));
  for (const auto& [name, seen] : score.others)
    text += fmt::format(fmt::runtime(format), name, seen, percent(seen, count));
  return text;
}

std::string list(const std::map<std::string, int64_t>& counts) {
  std::string text;
  for (const auto& [name, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, count);
  return text;
}

std::string clean_text(const MutationScore& score) {
  if (score.clean.steps == 0) return "No step without a fault was tried";
  return fmt::format(
      "{} of {} steps without a fault, on {} meshes, raised an alarm ({} ops and moves compared, {} values)",
      score.clean.alarms, score.clean.steps, score.clean.meshes, score.clean.cases, score.clean.values);
}

std::string trial_text(const Trial& trial) {
  return fmt::format("{}\n  {}", trial.mutant.text(), trial.report.empty() ? "no report" : trial.report);
}

}  // namespace

std::string mutation_table(const MutationScore& score) {
  auto text = fmt::format("{:<5}{:<48}{:>8}{:>12}{:>8}{:>8}{:>7}{:>8}\n", "class", "", "mutants", "equivalent",
                          "caught", "", "named", "");
  text += rows(score, "{:<5}{:<48}{:>8}{:>12}{:>8}{:>7.1f}%{:>7}{:>7.1f}%\n");
  text += fmt::format("\ncaught by: {}; at step: {}\n", list(score.caught_by), list(score.at_step));
  text += "\nwhat other approaches see of the same mutants\n" + seen_by(score, "  {:<22}{:>6}{:>8.1f}%\n");
  text += "\n" + clean_text(score) + "\n";
  if (score.was_cut) text += "time was up before all mutants were tried\n";
  for (const auto& trial : score.survivors) text += "\nSURVIVED  " + trial.mutant.text() + "\n";
  return text;
}

std::string mutation_markdown(const MutationScore& score, const std::string& command) {
  auto text = fmt::format(
      "# What verification sees\n\nWritten by `{}`. Faults are planted at places drawn by seed from all places of the "
      "class in a run: an op's result, a tensor that moves, pieces that arrive, state between steps, numbers of the "
      "optimizer, draws of dropout. A mutant is equivalent if no bit of loss, norm and state of any rank is another "
      "after {} steps. `named`: of those that were caught, the report names the op, or the collective with its axis, "
      "with module and phase, that the mutant declared beforehand.\n\n",
      command, trainer::Trials::kSteps);
  text += "| class | | mutants | equivalent | caught | | named | |\n|---|---|---|---|---|---|---|---|\n";
  text += rows(score, "| {} | {} | {} | {} | {} | {:.1f} % | {} | {:.1f} % |\n");
  text +=
      fmt::format("\nCaught by: {}; at step: {}. {}.\n", list(score.caught_by), list(score.at_step), clean_text(score));
  text +=
      "\n## Other approaches, on the same mutants\n\nReplica hashes: digests of what ranks hold alike, after every "
      "step. Loss curve: 1e-3 relative. Module outputs: the last result of each module's forward to 1e-3 of its "
      "largest element. Forward ops: the faulty op alone, to 1e-5.\n\n| approach | sees | |\n|---|---|---|\n";
  text += seen_by(score, "| {} | {} | {:.1f} % |\n");
  text += "\n## Survivors\n\n";
  for (const auto& trial : score.survivors) text += "- " + trial.mutant.text() + "\n";
  if (score.survivors.empty()) text += "None.\n";
  text += "\n## Caught, and another place named\n\n";
  for (const auto& trial : score.misnamed) text += "```\n" + trial_text(trial) + "\n```\n";
  if (score.misnamed.empty()) text += "None.\n";
  return text;
}

nlohmann::ordered_json mutation_json(const MutationScore& score) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::object(), survivors = nlohmann::ordered_json::array();
  for (const auto& name : names_in_order(score)) {
    const auto& one = score.classes.at(name);
    classes[name] = {
        {"mutants", one.mutants}, {"equivalent", one.equivalent}, {"caught", one.caught}, {"blame_exact", one.exact}};
  }
  for (const auto& trial : score.survivors) survivors.push_back(trial.mutant.text());
  nlohmann::ordered_json misnamed = nlohmann::ordered_json::array();
  for (const auto& trial : score.misnamed) misnamed.push_back(trial_text(trial));
  return {{"mutants", score.all.mutants},
          {"equivalent", score.all.equivalent},
          {"caught", score.all.caught},
          {"caught_by", score.caught_by},
          {"at_step", score.at_step},
          {"blame_exact", score.all.exact},
          {"false_alarms", score.clean.alarms},
          {"clean_steps", score.clean.steps},
          {"clean_cases", score.clean.cases},
          {"clean_values", score.clean.values},
          {"survivors", survivors},
          {"misnamed", misnamed},
          {"others", score.others},
          {"classes", classes},
          {"was_cut", score.was_cut}};
}

}  // namespace lockstep::tool
