#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/numerics.h"
#include "runtime/rule.h"

namespace lockstep {

/// An immutable table of rules. A mutant, or a user's rule, makes a new set.
class RuleSet {
 public:
  explicit RuleSet(std::span<const Rule> rules);

  /// The rows of runtime/rules/. Under canonical numerics the same rows, with local calls whose bits depend on nothing
  /// but values and global indices; ops without such a form refuse to run.
  static std::shared_ptr<const RuleSet> built_in(Numerics numerics = Numerics::kNative);

  /// This set with one row replaced or added.
  std::shared_ptr<const RuleSet> with(const Rule& rule) const;

  /// The row of "mm", or that of "add.Tensor" for "add_.Tensor"; null if there is none.
  const Rule* find(const std::string& op) const;

  const std::map<std::string, Rule>& rows() const { return rows_; }

 private:
  RuleSet() = default;
  std::map<std::string, Rule> rows_;
};

/// "add.Tensor" for "add_.Tensor"; the name itself if it is not an in-place op's.
std::string functional_name(const std::string& op);

/// What canonical numerics changes in a row.
struct CanonicalForm {
  const char* op;
  LocalFunction local;
  unsigned traits = Rule::kPlain;  ///< added to the row's
};

/// The families of the table, one function per file of runtime/rules/.
namespace rules {
std::vector<CanonicalForm> canonical();
std::span<const Rule> pointwise();
std::span<const Rule> views();
std::span<const Rule> matmul();
std::span<const Rule> reductions();
std::span<const Rule> rows();
std::span<const Rule> embedding();
std::span<const Rule> attention();
std::span<const Rule> random();
std::span<const Rule> factories();
std::span<const Rule> optimizer();
}  // namespace rules

}  // namespace lockstep
