#pragma once
#include <span>
#include <vector>

#include "trainer/mutation/site.h"
#include "trainer/mutation/spoil.h"

namespace lockstep::trainer {

/// What a class of faults does to the values of a run: "M4", "a constant factor".
struct MutantClass {
  const char* name;
  const char* text;
};

/// A kind of fault of a class.
struct Recipe {
  /// Which ranks it is on.
  enum class Where { kOne, kAll, kEither };
  /// Of which steps it is: each, or one that is drawn; or what it comes before: the first step, a later one, the end,
  /// the first step behind a checkpoint.
  enum class When { kDrawn, kFirst, kBetween, kEnd, kResumed };

  bool (*fits)(const Site&);
  std::vector<Change> changes;
  Where where = Where::kEither;
  When when = When::kDrawn;
};

struct ClassOfRecipes {
  MutantClass name;
  std::vector<Recipe> recipes;
};

/// M1 to M21.
const std::vector<ClassOfRecipes>& classes_of_recipes();
std::span<const MutantClass> mutant_classes();

}  // namespace lockstep::trainer
