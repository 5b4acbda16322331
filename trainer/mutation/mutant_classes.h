#pragma once
#include <random>
#include <span>
#include <string>
#include <vector>

#include "trainer/mutation/mutant.h"

namespace lockstep::trainer {

/// A run that mutants are drawn for, and all its places.
struct Stage {
  std::string mesh;
  int64_t microbatches = 1;
  bool recomputes = false;
  std::vector<Site> sites;
};

/// What a class of faults does to the values of a run: "M4", "a constant factor".
struct MutantClass {
  const char* name;
  const char* text;
};
std::span<const MutantClass> mutant_classes();

/// `count` mutants of a class (fewer if the stages have fewer places), at places drawn from all that the class has in
/// all stages, each with another place or another change. The same for the same engine.
std::vector<Mutant> draw_mutants(const std::string& of_class, std::span<const Stage> stages, size_t count,
                                 std::mt19937_64& random);

}  // namespace lockstep::trainer
