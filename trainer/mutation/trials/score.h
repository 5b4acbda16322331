#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/mutation/trials/trials.h"

namespace lockstep::trainer {

/// How much of what can go wrong verification sees.
struct MutationScore {
  struct OfClass {
    std::string text;
    int64_t mutants = 0, equivalent = 0, caught = 0, exact = 0;
    int64_t that_count() const { return mutants - equivalent; }
  };
  std::map<std::string, OfClass> classes;    ///< by name: "M1"
  std::map<std::string, int64_t> caught_by;  ///< by Verdict::mode
  std::map<std::string, int64_t> at_step;    ///< "1": so many were caught there
  std::map<std::string, int64_t> others;     ///< how many each other approach sees
  std::vector<Trial> trials;                 ///< all, in order
  OfClass all, transients;                   ///< transients: exact if the report says so
  CleanSteps clean;
  bool was_cut = false;  ///< time ended before all mutants were tried

  void add(const Trial& trial, const char* class_text);

  std::vector<Trial> survivors() const;  ///< neither caught nor equivalent
  std::vector<Trial> misnamed() const;   ///< caught, with another place named
  std::vector<Trial> equivalents() const;

  /// What falls short of what a full run has to reach: 99 % caught, 95 % of each class of 15 mutants that differ, 95 %
  /// named, no false alarm. Empty: all is reached.
  std::vector<std::string> missed_targets() const;
};

struct MutationOptions {
  std::string of_class;  ///< empty: all
  uint64_t seed = 1;
  size_t mutants_each = 48;  ///< of each class
  double seconds = 1e9;      ///< no mutant begins later
  int64_t clean_steps = 22;  ///< on each mesh, after the mutants of all classes; of one class a step
  std::function<void(const MutationScore&, const Trial&)> on_trial = [](const MutationScore&, const Trial&) {};
};

/// Draws mutants of each class and tries them in turn, one of each class after the other.
MutationScore score_mutants(const MutationOptions& options);

}  // namespace lockstep::trainer
