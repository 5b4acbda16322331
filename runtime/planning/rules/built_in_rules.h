#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/context/world.h"
#include "runtime/planning/rule_set.h"

namespace lockstep {

/// The rows of this folder and those of our own ops (own_op.h). Under canonical numerics the same rows, with local
/// calls whose bits depend on nothing but values and global indices; the rest refuses to run.
std::shared_ptr<const RuleSet> built_in_rules(Numerics numerics = Numerics::kNative);

/// The rules that a World runs by: those it was made with, else the built-in ones of its numerics. A World::part().
class RulesInUse {
 public:
  explicit RulesInUse(const World& world)
      : rules_(world.rules_asked_for() ? world.rules_asked_for() : built_in_rules(world.numerics())) {}
  const RuleSet& get() const { return *rules_; }

 private:
  std::shared_ptr<const RuleSet> rules_;
};

/// The families of LibTorch's ops, one function per file of this folder.
namespace rules {
std::span<const Rule> pointwise();
std::span<const Rule> pointwise_functions();
std::span<const Rule> along_dims();
std::span<const Rule> matrices();
std::span<const Rule> windows();
std::span<const Rule> losses();
std::span<const Rule> convolution();
std::span<const Rule> spectra();
std::span<const Rule> indexing();
std::span<const Rule> views();
std::span<const Rule> matmul();
std::span<const Rule> reductions();
std::span<const CanonicalRule> canonical_reductions();
std::span<const Rule> rows();
std::span<const Rule> embedding();
std::span<const CanonicalRule> canonical_embedding();
std::span<const Rule> random();
std::span<const Rule> factories();
}  // namespace rules

}  // namespace lockstep
