#include "trainer/mutation/mutant_classes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "consistency/difference.h"
#include "core/mesh_text.h"

namespace lockstep::trainer {
namespace {

using Kind = Site::Kind;

bool is_value(const Site& site) { return site.kind == Kind::kOp || site.kind == Kind::kMove; }
bool crosses(const Site& site) { return !site.collective.empty(); }
bool in(const Site& site, Phase phase) { return is_value(site) && site.id.phase == phase; }
bool is_of_tokens(const Site& site) { return site.id.phase == Phase::kInit && !site.is_float; }

/// Which ranks a fault is on.
enum class Where { kOne, kAll, kEither };

struct Recipe {
  MutantClass name;
  bool (*fits)(const Site&);
  std::vector<Change> changes;
  Where where = Where::kEither;
};

using C = Change;

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all{
      {{"M1", "a dropped collective"}, [](const Site& s) { return s.kind == Kind::kPieces; }, {C::kZero}},
      {{"M2", "another kind or order"},
       [](const Site& s) { return crosses(s); },
       {C::kReverse, C::kRoll, C::kOtherRank}},
      {{"M3", "another group"}, [](const Site& s) { return crosses(s); }, {C::kOtherRank}},
      {{"M4", "a constant factor"}, [](const Site& s) { return is_value(s) && s.is_float; }, {C::kTimes}},
      {{"M5", "an average for a sum"},
       [](const Site& s) { return s.kind == Kind::kMove && s.is_reduction && s.is_float; },
       {C::kTimes},
       Where::kAll},
      {{"M6", "offset, permutation or order of shards"}, is_value, {C::kRoll, C::kReverse, C::kOtherRank}},
      {{"M7", "a part of a sum for the whole, or the reverse"},
       [](const Site& s) {
         return (s.kind == Kind::kPieces && s.is_reduction) || (s.kind == Kind::kOp && s.is_replicated);
       },
       {C::kZero, C::kTimes}},
      {{"M8", "another random stream"}, [](const Site& s) { return s.kind == Kind::kDraw; }, {C::kPlus, C::kOtherRank}},
      {{"M9", "a stale buffer or a missing wait"},
       [](const Site& s) { return s.kind != Kind::kState && s.kind != Kind::kNumber && s.kind != Kind::kDraw; },
       {C::kOld}},
      {{"M10", "gradients reduced too early, twice or not"},
       [](const Site& s) { return s.id.op == "reduce_gradients"; },
       {C::kZero, C::kOld, C::kTimes}},
      {{"M11", "accumulated in a smaller type"},
       [](const Site& s) { return is_value(s) && s.is_float && (s.is_reduction || s.kind == Kind::kOp); },
       {C::kRounded}},
      {{"M12", "a local normaliser"}, is_of_tokens, {C::kZero, C::kTimes, C::kPlus, C::kOtherRank, C::kElement}},
      {{"M13", "state out of step"},
       [](const Site& s) { return s.kind == Kind::kState || s.kind == Kind::kNumber; },
       {C::kTimes, C::kZero, C::kOld, C::kPlus, C::kRoll, C::kElement}},
      {{"M14", "a recomputation that differs"},
       [](const Site& s) { return in(s, Phase::kRecompute) && s.is_float; },
       {C::kTimes, C::kRoll, C::kOld, C::kZero}},
      {{"M15", "forward right, backward wrong"},
       [](const Site& s) { return in(s, Phase::kBackward) && s.is_float; },
       {C::kTimes, C::kNegate, C::kRoll, C::kZero},
       Where::kAll},
      {{"M16", "a norm that counts too much or too little"},
       [](const Site& s) { return in(s, Phase::kClip) || (s.kind == Kind::kPieces && s.id.phase == Phase::kClip); },
       {C::kTimes, C::kZero, C::kOld, C::kPlus, C::kElement}},
      {{"M17", "uneven shards, padding"},
       [](const Site& s) { return is_value(s) && s.is_uneven; },
       {C::kLastRow, C::kRoll}},
      {{"M18", "a flipped bit"},
       [](const Site& s) { return s.kind != Kind::kNumber && s.kind != Kind::kDraw; },
       {C::kBit},
       Where::kOne},
      {{"M19", "an axis of one rank"},
       [](const Site& s) { return s.kind == Kind::kMove && s.axis_size == 1; },
       {C::kTimes, C::kZero, C::kOld, C::kRoll}},
      {{"M20", "what was cached for another call"},
       [](const Site& s) { return s.kind == Kind::kOp || s.kind == Kind::kNumber; },
       {C::kOld},
       Where::kAll}};
  return all;
}

Expectation expectation_of(const Site& site) {
  const std::string phase = to_text(site.id.phase);
  if (site.kind == Kind::kOp || site.kind == Kind::kDraw) return {"op", site.id.op, phase, site.id.module};
  if (site.kind == Kind::kNumber) return {.kind = "number", .phase = "optimizer"};
  if (site.kind == Kind::kState) return {.module = site.id.module};
  return {crosses(site) ? "collective" : "local move", site.id.op, phase, site.id.module, site.collective, site.axis};
}

class Drawer {
 public:
  Drawer(const Recipe& recipe, std::span<const Stage> stages, std::mt19937_64& random)
      : recipe_(recipe), stages_(stages), random_(random) {
    for (size_t s = 0; s < stages.size(); ++s)
      for (size_t i = 0; i < stages[s].sites.size(); ++i)
        if (recipe.fits(stages[s].sites[i])) places_.emplace_back(s, i);
  }

  std::vector<Mutant> draw(size_t count) {
    std::vector<Mutant> mutants;
    std::set<std::tuple<size_t, size_t, int, bool>> seen;
    for (size_t attempt = 0; !places_.empty() && attempt < 20 * count && mutants.size() < count; ++attempt) {
      const auto [s, i] = places_[below(places_.size())];
      auto mutant = at(stages_[s], stages_[s].sites[i]);
      if (!seen.insert({s, i, static_cast<int>(mutant.change), mutant.ranks.empty()}).second) continue;
      mutants.push_back(std::move(mutant));
    }
    return mutants;
  }

 private:
  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random_); }

  Mutant at(const Stage& stage, const Site& site) {
    const auto ranks = static_cast<size_t>(rank_count(parse_mesh_axes(stage.mesh)));
    Mutant mutant{.of_class = recipe_.name.name,
                  .mesh = stage.mesh,
                  .microbatches = stage.microbatches,
                  .recomputes = stage.recomputes,
                  .site = site,
                  .change = recipe_.changes[below(recipe_.changes.size())],
                  .expected = expectation_of(site)};
    mutant.amount = amount_of(mutant);
    const bool is_one = recipe_.where == Where::kOne || (recipe_.where == Where::kEither && below(2) == 0);
    if (is_one && site.kind != Kind::kNumber) mutant.ranks = {static_cast<int>(below(ranks))};
    return mutant;
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

  const Recipe& recipe_;
  std::span<const Stage> stages_;
  std::mt19937_64& random_;
  std::vector<std::pair<size_t, size_t>> places_;
};

}  // namespace

std::string Mutant::text() const {
  const auto where = ranks.empty() ? "on all ranks" : "on " + ranks_text(ranks);
  const bool has_amount = change == Change::kTimes || change == Change::kPlus;
  return fmt::format("{} {}{} {} of {}{}{}: {}", of_class, to_text(change),
                     has_amount ? fmt::format(" {:g}", amount) : "", where, mesh,
                     microbatches > 1 ? fmt::format(", {} microbatches", microbatches) : "",
                     recomputes ? ", recomputed" : "", site.text());
}

std::span<const MutantClass> mutant_classes() {
  static const auto names = [] {
    std::vector<MutantClass> all;
    for (const auto& recipe : recipes()) all.push_back(recipe.name);
    return all;
  }();
  return names;
}

std::vector<Mutant> draw_mutants(const std::string& of_class, std::span<const Stage> stages, size_t count,
                                 std::mt19937_64& random) {
  for (const auto& recipe : recipes())
    if (recipe.name.name == of_class) return Drawer(recipe, stages, random).draw(count);
  return {};
}

}  // namespace lockstep::trainer
