#include "trainer/mutation/mutant_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "consistency/difference.h"
#include "core/mesh_text.h"
#include "trainer/mutation/expectation.h"

namespace lockstep::trainer {
namespace {

using Kind = Site::Kind;
using Where = Recipe::Where;
using When = Recipe::When;

/// What happens in a step, where a fault may be there once only.
bool can_be_once(const Mutant& mutant) {
  switch (mutant.site.kind) {
    case Kind::kOp:
    case Kind::kOperand:
    case Kind::kArgument:
    case Kind::kMove:
    case Kind::kPieces:
    case Kind::kDraw:
    case Kind::kGradient:
      return mutant.change != Change::kOld;
    default:
      return false;
  }
}

class Drawer {
 public:
  Drawer(const ClassOfRecipes& of_class, std::span<const SurveyedRun> stages, std::mt19937_64& random)
      : class_(of_class), stages_(stages), random_(random), places_(of_class.recipes.size()) {
    for (size_t r = 0; r < places_.size(); ++r)
      for (size_t s = 0; s < stages.size(); ++s)
        for (size_t i = 0; i < stages[s].sites.size(); ++i)
          if (of_class.recipes[r].fits(stages[s].sites[i])) places_[r].emplace_back(s, i);
  }

  std::vector<Mutant> draw(size_t count) {
    std::vector<Mutant> mutants;
    std::set<std::tuple<size_t, size_t, int, bool>> seen;
    const auto first = below(places_.size());  // so that a few mutants are not always of the same kinds
    for (size_t attempt = 0; attempt < 20 * count && mutants.size() < count; ++attempt) {
      const auto recipe = (first + attempt) % places_.size();
      if (places_[recipe].empty()) continue;
      const auto [s, i] = places_[recipe][below(places_[recipe].size())];
      auto mutant = at(class_.recipes[recipe], stages_[s], stages_[s].sites[i]);
      if (!seen.insert({s, i, static_cast<int>(mutant.change), mutant.ranks.empty()}).second) continue;
      mutant.expected = expectation_of(mutant);
      mutants.push_back(std::move(mutant));
    }
    return mutants;
  }

 private:
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  Mutant at(const Recipe& recipe, const SurveyedRun& stage, const Site& site) {
    const auto ranks = static_cast<size_t>(parse_mesh(stage.setup.mesh).ranks());
    Mutant mutant{.of_class = class_.name.name,
                  .setup = stage.setup,
                  .site = site,
                  .change = recipe.changes[below(recipe.changes.size())]};
    mutant.amount = amount_of(mutant);
    const bool is_one = recipe.where == Where::kOne || (recipe.where == Where::kEither && below(2) == 0);
    if (is_one) mutant.ranks = {static_cast<int>(below(ranks))};
    choose_step(recipe.when, mutant);
    return mutant;
  }

  /// One in eight is there in one step alone, one in eight at the first attempt of that step alone.
  void choose_step(When when, Mutant& mutant) {
    const auto any = 1 + static_cast<int64_t>(below(kMutationSteps));
    const auto chance = below(8);
    if (when == When::kFirst) mutant.step = 1;
    if (when == When::kBetween) mutant.step = 2 + static_cast<int64_t>(below(kMutationSteps - 1));
    if (when == When::kEnd) mutant.step = kMutationSteps + 1;
    if (when == When::kResumed) mutant.step = 2, mutant.resumes = true;
    if (when != When::kDrawn) return;
    if (mutant.site.kind == Kind::kState) mutant.step = 1 + static_cast<int64_t>(below(kMutationSteps + 1));
    const bool is_given = mutant.site.kind == Kind::kBatch || mutant.site.kind == Kind::kRate;
    if (is_given || (can_be_once(mutant) && chance < 2)) mutant.step = any;
    mutant.is_transient = can_be_once(mutant) && chance == 0;
  }

  double amount_of(const Mutant& mutant) {
    constexpr double kFactors[] = {2, 0.5, 3, 1.001, -1};
    const auto ranks = static_cast<double>(std::max<int64_t>(mutant.site.axis_size, 2));
    if (mutant.of_class == "M5") return below(2) == 0 ? ranks : 1 / ranks;
    if (mutant.change == Change::kTimes) return kFactors[below(5)];
    if (mutant.change == Change::kPlus)
      return mutant.site.kind == Kind::kDraw ? 1 + static_cast<double>(below(9)) : 0.01;
    if (mutant.change == Change::kRoll) return static_cast<double>(below(2));
    return static_cast<double>(below(100000));
  }

  const ClassOfRecipes& class_;
  std::span<const SurveyedRun> stages_;
  std::mt19937_64& random_;
  std::vector<std::vector<std::pair<size_t, size_t>>> places_;  ///< stage and site, of each recipe
};

std::string when_text(const Mutant& mutant) {
  if (mutant.resumes) return ", behind a checkpoint";
  if (mutant.site.kind == Kind::kState)
    return mutant.step > kMutationSteps ? ", at the end" : fmt::format(", before step {}", mutant.step);
  if (mutant.step == 0) return "";
  return fmt::format(", in step {}{}", mutant.step, mutant.is_transient ? " at the first attempt" : "");
}

}  // namespace

std::string Mutant::text() const {
  const auto where = ranks.empty() ? "on all ranks" : "on " + ranks_text(ranks);
  const bool has_amount = change == Change::kTimes || change == Change::kPlus;
  return fmt::format("{} {}{} {} of {}{}: {}", of_class, to_text(change),
                     has_amount ? fmt::format(" {:g}", amount) : "", where, setup.text(), when_text(*this),
                     site.text());
}

std::vector<Mutant> draw_mutants(const std::string& of_class, std::span<const SurveyedRun> stages, size_t count,
                                 std::mt19937_64& random) {
  for (const auto& one : classes_of_recipes())
    if (one.name.name == of_class) return Drawer(one, stages, random).draw(count);
  return {};
}

}  // namespace lockstep::trainer
