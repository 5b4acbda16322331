#include "runtime/planning/check_operands.h"

#include <cctype>
#include <map>

#include "core/error.h"

namespace lockstep {
namespace {

/// The dims of one operand: letters before and after "...".
struct Term {
  std::string_view before, after;
  bool dots = false;
};

bool is_dims(std::string_view text) {
  return text.find("->") != std::string_view::npos &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,->") == std::string_view::npos;
}

std::vector<Term> terms_of(std::string_view text) {
  std::vector<Term> terms;
  text = text.substr(0, text.find("->"));
  while (true) {
    const auto comma = std::min(text.find(','), text.size());
    const auto one = text.substr(0, comma);
    const auto dots = one.find("...");
    if (dots == std::string_view::npos)
      terms.push_back({{}, one, false});
    else
      terms.push_back({one.substr(0, dots), one.substr(dots + 3), true});
    if (comma == text.size()) return terms;
    text.remove_prefix(comma + 1);
  }
}

class Checker {
 public:
  Checker(const Rule& rule, const Call& call)
      : rule_(rule), call_(call), broadcasts_(!std::string_view(rule.op).starts_with("mesh::")) {}

  void run() {
    const auto terms = terms_of(rule_.dims);
    for (size_t i = 0; i < call_.operand_sizes.size(); ++i) check(i, terms[std::min(i, terms.size() - 1)]);
  }

 private:
  void check(size_t operand, const Term& term) {
    const auto& sizes = call_.operand_sizes[operand];
    const size_t letters = term.before.size() + term.after.size();
    if (term.dots ? sizes.size() < letters : sizes.size() != letters)
      fail<BadInput>("{}: operand {} has {} dimensions, expected {}{} ({})", rule_.op, operand, sizes.size(),
                     term.dots ? "at least " : "", letters, rule_.dims);
    for (size_t d = 0; d < term.before.size(); ++d) expect(operand, d, std::string(1, term.before[d]), false);
    const size_t first = sizes.size() - term.after.size();
    for (size_t d = 0; d < term.after.size(); ++d) expect(operand, first + d, std::string(1, term.after[d]), false);
    if (!term.dots) return;
    if (!broadcasts_) expect_leading_count(operand, first - term.before.size());
    for (size_t d = term.before.size(); d < first; ++d)
      expect(operand, d, fmt::format("...{}", first - d), broadcasts_);
  }

  void expect_leading_count(size_t operand, size_t count) {
    if (!leading_) leading_ = count;
    if (*leading_ != count)
      fail<BadInput>("{}: operand {} has {} leading dimensions, others have {} ({})", rule_.op, operand, count,
                     *leading_, rule_.dims);
  }

  void expect(size_t operand, size_t dim, const std::string& label, bool broadcasts) {
    const int64_t size = call_.operand_sizes[operand][dim];
    auto& known = sizes_.try_emplace(label, size, operand).first->second;
    if (known.first == size || (broadcasts && size == 1)) return;
    if (broadcasts && known.first == 1)
      known = {size, operand};
    else
      fail<BadInput>("{}: dimension {} of operand {} has {} elements, and operand {} has {} there ({})", rule_.op, dim,
                     operand, size, known.second, known.first, rule_.dims);
  }

  const Rule& rule_;
  const Call& call_;
  bool broadcasts_;
  std::optional<size_t> leading_;
  std::map<std::string, std::pair<int64_t, size_t>> sizes_;  ///< per label: size, and an operand that has it
};

}  // namespace

void check_operands(const Rule& rule, const Call& call) {
  // Where sizes decide how dims are read, LibTorch's rows check them where they give the result's sizes.
  const bool fixed = !rule.sharding || std::string_view(rule.op).starts_with("mesh::");
  if (fixed && is_dims(rule.dims)) Checker(rule, call).run();
}

}  // namespace lockstep
