#pragma once
#include <random>
#include <span>
#include <string>
#include <vector>

#include "trainer/mutation/mutant.h"
#include "trainer/mutation/recipes.h"

namespace lockstep::trainer {

/// A run that mutants are drawn for, and all its places.
struct SurveyedRun {
  Setup setup;
  std::vector<Site> sites;
};

/// `count` mutants of a class (fewer if the stages have fewer places), of each of its kinds of fault in turn, at places
/// drawn from all that the kind has in all stages, each with another place or another change. The same for the same
/// engine.
std::vector<Mutant> draw_mutants(const std::string& of_class, std::span<const SurveyedRun> stages, size_t count,
                                 std::mt19937_64& random);

}  // namespace lockstep::trainer
