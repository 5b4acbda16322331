#pragma once
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep {

/// The dimensions of one operand or result in a rule's text: "b...D" is one letter, any number of dimensions, one
/// letter. Borrows the text.
struct DimsTerm {
  std::string_view before = {}, after = {};  ///< without dots all letters are `after`
  bool dots = false;

  size_t letters() const { return before.size() + after.size(); }
  /// Whether it can stand for so many dimensions.
  bool fits(size_t dim_count) const { return dots ? dim_count >= letters() : dim_count == letters(); }
};

/// "mk,kn->mn": a term for each operand and each result; a short side repeats its last term.
struct DimsText {
  std::vector<DimsTerm> operands, results;

  static const DimsTerm& of(const std::vector<DimsTerm>& terms, size_t number);
};

/// Throws BadInput, "who: operand 1 has 3 dimensions, expected 2 (mk,kn->mn)", if `term` of these dims cannot stand for
/// so many. `who` may be empty.
void expect_dim_count(std::string_view who, size_t operand, size_t count, const DimsTerm& term, std::string_view dims);

/// Empty if the text is something else: the description of a rule whose dimensions depend on its arguments.
std::optional<DimsText> parse_dims(std::string_view text);

}  // namespace lockstep
