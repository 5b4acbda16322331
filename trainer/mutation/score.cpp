#include "trainer/mutation/score.h"

#include <chrono>

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

const char* text_of(const std::string& name) {
  for (const auto& one : mutant_classes())
    if (one.name == name) return one.text;
  return "";
}

}  // namespace

void MutationScore::add(const Trial& trial, const char* class_text) {
  auto& mine = classes[trial.mutant.of_class];
  mine.text = class_text;
  for (auto* sum : {&mine, &all}) {
    ++sum->mutants;
    sum->equivalent += trial.is_equivalent;
    sum->caught += trial.is_caught();
    sum->exact += trial.is_exact;
  }
  if (trial.is_equivalent) return;
  for (const auto& [name, sees] : trial.others) others[name] += sees;
  if (!trial.is_caught()) return survivors.push_back(trial);
  ++caught_by[trial.caught_by];
  ++at_step[std::to_string(trial.at_step)];
  if (!trial.is_exact) misnamed.push_back(trial);
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
