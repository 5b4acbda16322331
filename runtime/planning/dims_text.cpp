#include "runtime/planning/dims_text.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr std::string_view kDots = "...", kArrow = "->";

DimsTerm parse_term(std::string_view text) {
  const auto dots = text.find(kDots);
  if (dots == std::string_view::npos) return {.after = text};
  return {text.substr(0, dots), text.substr(dots + kDots.size()), true};
}

std::vector<DimsTerm> parse_side(std::string_view text) {
  std::vector<DimsTerm> terms;
  while (true) {
    const auto comma = text.find(',');
    terms.push_back(parse_term(text.substr(0, comma)));
    if (comma == std::string_view::npos) return terms;
    text.remove_prefix(comma + 1);
  }
}

bool is_dims(std::string_view text) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == ',' || c == '-' || c == '>';
  };
  return text.find(kArrow) != std::string_view::npos && std::all_of(text.begin(), text.end(), allowed);
}

}  // namespace

const DimsTerm& DimsText::of(const std::vector<DimsTerm>& terms, size_t number) {
  return terms[std::min(number, terms.size() - 1)];
}

std::optional<DimsText> parse_dims(std::string_view text) {
  if (!is_dims(text)) return std::nullopt;
  const auto arrow = text.find(kArrow);
  return DimsText{parse_side(text.substr(0, arrow)), parse_side(text.substr(arrow + kArrow.size()))};
}

void expect_dim_count(std::string_view who, size_t operand, size_t count, const DimsTerm& term, std::string_view dims) {
  if (!term.fits(count))
    fail<BadInput>("{}{}operand {} has {} dimensions, expected {}{} ({})", who, who.empty() ? "" : ": ", operand, count,
                   term.dots ? "at least " : "", term.letters(), dims);
}

}  // namespace lockstep
