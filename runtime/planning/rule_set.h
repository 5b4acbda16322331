#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/planning/rule.h"

namespace lockstep {

/// An immutable table of rules. A mutant, or a user's rule, makes a new set.
class RuleSet {
 public:
  explicit RuleSet(std::span<const Rule> rules);

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
struct CanonicalRule {
  const char* op;
  LocalFunction local;
  unsigned traits = Rule::kPlain;  ///< added to the row's
};

/// Throws BadInput, with what to use instead, where canonical numerics has no form of the op, or none on a GPU.
void require_canonical_form(const Rule& rule, std::string_view op, bool is_on_gpu);
/// That BadInput, of an op without a canonical form on a GPU.
[[noreturn]] void refuse_on_gpu(std::string_view op);

}  // namespace lockstep
