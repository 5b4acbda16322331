#include "trainer/mutation/trials/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>

namespace lockstep::trainer {
namespace {

/// One of each class in turn, so that a run that is cut has tried all of them.
std::vector<Mutant> in_turn(std::vector<std::vector<Mutant>> by_class) {
  std::vector<Mutant> all;
  for (size_t n = 0; !by_class.empty(); ++n) {
    bool any = false;
    for (auto& mutants : by_class) {
      if (n >= mutants.size()) continue;
      any = true;
      all.push_back(std::move(mutants[n]));
      all.back().number = static_cast<int>(all.size());
    }
    if (!any) break;
  }
  return all;
}

std::vector<Mutant> drawn(const MutationOptions& options, const Trials& trials) {
  std::vector<std::vector<Mutant>> by_class;
  for (const auto& [name, text] : mutant_classes()) {
    if (!options.of_class.empty() && options.of_class != name) continue;
    std::mt19937_64 random(options.seed * 1009 + static_cast<uint64_t>(std::stoi(name + 1)));
    by_class.push_back(draw_mutants(name, trials.stages(), options.mutants_each, random));
  }
  return in_turn(std::move(by_class));
}

constexpr int64_t kLeastOfClass = 15;

std::vector<Trial> those_of(const std::vector<Trial>& trials, bool (*is_one)(const Trial&)) {
  std::vector<Trial> some;
  std::copy_if(trials.begin(), trials.end(), std::back_inserter(some), is_one);
  return some;
}

const char* text_of(const std::string& name) {
  for (const auto& one : mutant_classes())
    if (one.name == name) return one.text;
  return "";
}

}  // namespace

void MutationScore::add(const Trial& trial, const char* class_text) {
  trials.push_back(trial);
  auto& mine = classes[trial.mutant.of_class];
  mine.text = class_text;
  for (auto* sum : {&mine, &all, &transients}) {
    if (sum == &transients && !trial.mutant.is_transient) continue;
    ++sum->mutants;
    sum->equivalent += trial.is_equivalent;
    sum->caught += trial.is_caught();
    sum->exact += trial.verdict.is_named;
  }
  if (trial.is_equivalent) return;
  for (const auto& [name, sees] : trial.others) others[name] += sees;
  if (!trial.is_caught()) return;
  ++caught_by[trial.verdict.mode];
  ++at_step[std::to_string(trial.verdict.step)];
}

std::vector<Trial> MutationScore::survivors() const {
  return those_of(trials, [](const Trial& trial) { return !trial.is_equivalent && !trial.is_caught(); });
}

std::vector<Trial> MutationScore::misnamed() const {
  return those_of(trials, [](const Trial& trial) { return trial.is_caught() && !trial.verdict.is_named; });
}

std::vector<Trial> MutationScore::equivalents() const {
  return those_of(trials, [](const Trial& trial) { return trial.is_equivalent; });
}

std::vector<std::string> MutationScore::missed_targets() const {
  std::vector<std::string> missed;
  const auto require = [&](const std::string& what, int64_t part, int64_t whole, int64_t percent) {
    if (100 * part < percent * whole)
      missed.push_back(fmt::format("{}: {} of {}, below {} %", what, part, whole, percent));
  };
  require("caught", all.caught, all.that_count(), 99);
  for (const auto& [name, one] : classes) {
    require("caught of " + name, one.caught, one.that_count(), 95);
    if (one.that_count() < kLeastOfClass)
      missed.push_back(
          fmt::format("{} has {} mutants that differ, fewer than {}", name, one.that_count(), kLeastOfClass));
  }
  require("named", all.exact, all.caught, 95);
  if (clean.alarms > 0) missed.push_back(fmt::format("{} false alarms", clean.alarms));
  return missed;
}

MutationScore score_mutants(const MutationOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const Trials trials;
  MutationScore score;
  for (const auto& mutant : drawn(options, trials)) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (passed.count() > options.seconds) {
      score.was_cut = true;
      break;
    }
    const auto trial = trials.run(mutant);
    score.add(trial, text_of(mutant.of_class));
    options.on_trial(score, trial);
  }
  if (!score.was_cut) score.clean = trials.run_clean(options.of_class.empty() ? options.clean_steps : 1);
  return score;
}

}  // namespace lockstep::trainer
