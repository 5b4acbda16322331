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
  const auto& report = trial.verdict.report;
  return fmt::format("{}\n  {}", trial.mutant.text(), report.empty() ? "no report" : report);
}

/// "12 of 14 that differ are caught, and said not to come back".
std::string transients_text(const MutationScore& score) {
  const auto& all = score.transients;
  return fmt::format(
      "Of {} faults that were there once, at the first attempt of a step ({} equivalent), {} were caught, and {} "
      "reports say that they did not come back",
      all.mutants, all.equivalent, all.caught, all.exact);
}

std::map<std::string, int64_t> count_reasons(const std::vector<Trial>& trials) {
  std::map<std::string, int64_t> counts;
  for (const auto& trial : trials)
    ++counts[trial.changes == 0 ? "where no value is another" : "where values are, but no bit that a step leaves"];
  return counts;
}

std::string survivor_text(const Trial& trial) { return trial.mutant.text() + ": " + trial.reason(); }

/// What tells most about a trial; the report of one that was named says nothing that its text does not.
nlohmann::ordered_json trial_json(const Trial& trial) {
  nlohmann::ordered_json json{{"class", trial.mutant.of_class}, {"text", trial.mutant.text()}};
  const auto& verdict = trial.verdict;
  if (trial.is_equivalent || !trial.is_caught()) {
    json["outcome"] = trial.is_equivalent ? "equivalent" : "survived";
    json["reason"] = trial.reason();
    return json;
  }
  json["outcome"] = "caught";
  json["mode"] = verdict.mode, json["step"] = verdict.step, json["named"] = verdict.is_named;
  if (trial.mutant.is_transient) json["transient"] = verdict.is_transient;
  if (trial.replicas_step > 0) json["replicas_step"] = trial.replicas_step;
  if (!verdict.is_named) json["report"] = verdict.report;
  return json;
}

nlohmann::ordered_json trials_json(const std::vector<Trial>& trials, nlohmann::ordered_json (*make)(const Trial&)) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& trial : trials) list.push_back(make(trial));
  return list;
}

std::string sources_part(const std::string& before) {
  const auto mark = before.find(kSourcesMark);
  return mark == std::string::npos ? std::string(kSourcesMark) + "\n" : before.substr(mark);
}

/// Of the page: what the tables are of.
std::string introduction(const std::string& command) {
  return fmt::format(
      "# What verification sees\n\nWritten by `{}`, which exits with 3 where a target is missed. Faults are planted at "
      "places drawn by seed from all places of the class in a run: what an op reads, is told or gives, views included; "
      "a tensor that moves, pieces that arrive; state before the first step, between two and at the end; what a "
      "microbatch adds to a gradient; numbers of the optimizer, on all ranks or on one; draws of dropout; tokens, "
      "labels "
      "and rates that a step is given; tensors and numbers of a checkpoint that the run resumes from. Each run is made "
      "as "
      "`lockstep train --verify` makes it, with its default modes, up to the first finding.\n\nA mutant is equivalent "
      "if "
      "no bit of loss, raw gradients, norm and state of any rank is another after {} steps; docs/mutation_score.json "
      "lists "
      "each with its reason. `named`: of those that were caught, the report names what the mutant declared beforehand: "
      "op with microbatch, phase, module, occurrence, rule and ranks; collective with axis, group and ranks; number; "
      "parameter; of what does not come back, that it does not.\n\n",
      command, trainer::kMutationSteps);
}

}  // namespace

std::string mutation_table(const MutationScore& score) {
  auto text = fmt::format("{:<5}{:<90}{:>8}{:>12}{:>8}{:>8}{:>7}{:>8}\n", "class", "", "mutants", "equivalent",
                          "caught", "", "named", "");
  text += rows(score, "{:<5}{:<90}{:>8}{:>12}{:>8}{:>7.1f}%{:>7}{:>7.1f}%\n");
  text += fmt::format("\ncaught by: {}; at step: {}\n", list(score.caught_by), list(score.at_step));
  text += transients_text(score) + "\n";
  text += "\nwhat other approaches see of the same mutants\n" + seen_by(score, "  {:<22}{:>6}{:>8.1f}%\n");
  text += "\n" + clean_text(score) + "\n";
  if (score.was_cut) text += "time was up before all mutants were tried\n";
  for (const auto& trial : score.survivors()) text += "\nSURVIVED  " + survivor_text(trial) + "\n";
  return text;
}

namespace {

std::string approaches_part(const MutationScore& score) {
  return "\n## Other approaches, on the same mutants\n\nReplica hashes: digests of what ranks hold alike, after every "
         "step. Loss curve: 1e-3 relative. Module outputs: the last result of each module's forward to 1e-3 of its "
         "largest element. Forward ops: an op's forward by itself, cut over two ranks, against one, to 1e-5.\n\n"
         "| approach | sees | |\n|---|---|---|\n" +
         seen_by(score, "| {} | {} | {:.1f} % |\n");
}

/// What is not as it should be.
std::string lists_part(const MutationScore& score) {
  std::string text = "\n## Survivors\n\n";
  for (const auto& trial : score.survivors()) text += "- " + survivor_text(trial) + "\n";
  if (score.survivors().empty()) text += "None.\n";
  text += "\n## Caught, and something else named\n\n";
  for (const auto& trial : score.misnamed()) text += "```\n" + trial_text(trial) + "\n```\n";
  if (score.misnamed().empty()) text += "None.\n";
  return text;
}

nlohmann::ordered_json counts_json(const MutationScore::OfClass& one, const char* exact) {
  return {{"mutants", one.mutants}, {"equivalent", one.equivalent}, {"caught", one.caught}, {exact, one.exact}};
}

nlohmann::ordered_json survivor_json(const Trial& trial) {
  return {{"text", trial.mutant.text()}, {"reason", trial.reason()}};
}

}  // namespace

std::string mutation_markdown(const MutationScore& score, const std::string& command, const std::string& before) {
  auto text = introduction(command);
  text += "| class | | mutants | equivalent | caught | | named | |\n|---|---|---|---|---|---|---|---|\n";
  text += rows(score, "| {} | {} | {} | {} | {} | {:.1f} % | {} | {:.1f} % |\n");
  text +=
      fmt::format("\nCaught by: {}; at step: {}. {}. {}. Equivalent: {}.\n", list(score.caught_by), list(score.at_step),
                  transients_text(score), clean_text(score), list(count_reasons(score.equivalents())));
  return text + approaches_part(score) + lists_part(score) + "\n" + sources_part(before);
}

nlohmann::ordered_json mutation_json(const MutationScore& score) {
  auto classes = nlohmann::ordered_json::object();
  for (const auto& name : names_in_order(score)) classes[name] = counts_json(score.classes.at(name), "blame_exact");
  return {{"mutants", score.all.mutants},
          {"equivalent", score.all.equivalent},
          {"caught", score.all.caught},
          {"caught_by", score.caught_by},
          {"at_step", score.at_step},
          {"blame_exact", score.all.exact},
          {"transients", counts_json(score.transients, "said")},
          {"false_alarms", score.clean.alarms},
          {"clean_steps", score.clean.steps},
          {"clean_meshes", score.clean.meshes},
          {"clean_cases", score.clean.cases},
          {"clean_values", score.clean.values},
          {"survivors", trials_json(score.survivors(), survivor_json)},
          {"others", score.others},
          {"classes", classes},
          {"was_cut", score.was_cut},
          {"missed_targets", score.missed_targets()},
          {"trials", trials_json(score.trials, trial_json)}};
}

}  // namespace lockstep::tool
