#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trainer/mutation/trials.h"

namespace lockstep::trainer {

/// How much of what can go wrong verification sees.
struct MutationScore {
  struct OfClass {
    std::string text;
    int64_t mutants = 0, equivalent = 0, caught = 0, exact = 0;
    int64_t that_count() const { return mutants - equivalent; }
  };
  std::map<std::string, OfClass> classes;    ///< by name: "M1"
  std::map<std::string, int64_t> caught_by;  ///< "start", "step", "error"
  std::map<std::string, int64_t> at_step;    ///< "1": so many were caught there
  std::map<std::string, int64_t> others;     ///< how many each other approach sees
  std::vector<Trial> survivors;              ///< neither caught nor equivalent
  std::vector<Trial> misnamed;               ///< caught, with another place named
  OfClass all;
  Trials::Clean clean;
  bool was_cut = false;  ///< time ended before all mutants were tried

  void add(const Trial& trial, const char* class_text);
};

struct MutationOptions {
  std::string of_class;  ///< empty: all
  uint64_t seed = 1;
  size_t mutants_each = 36;  ///< of each class
  double seconds = 1e9;      ///< no mutant begins later
  int64_t clean_steps = 28;  ///< on each mesh, after the mutants of all classes; of one class a step
  std::function<void(const MutationScore&, const Trial&)> on_trial = [](const MutationScore&, const Trial&) {};
};

/// Draws mutants of each class and tries them in turn, one of each class after the other.
MutationScore score_mutants(const MutationOptions& options);

}  // namespace lockstep::trainer
