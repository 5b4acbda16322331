#pragma once
#include <map>
#include <string>
#include <vector>

#include "runtime/dispatch/service.h"
#include "runtime/planning/rule.h"

/// Words for the op table, for the terminal, JSON and the page alike.
namespace lockstep::tool {

/// "as is", "own form" or "refuses"
std::string canonical_text(const Rule& rule);
/// The same of an overload; "as its parts" of what is put together of others, "no" of what is not served.
std::string canonical_text(const RuleSet& rules, const Served& op);

/// The overloads that follow from each row or other functional overload, by its name.
std::map<std::string, std::vector<std::string>> forms_of(const std::vector<Served>& all);

/// How many overloads there are, how many of them are served, and in which ways.
struct ServedCounts {
  int64_t overloads = 0, served = 0, functional = 0;
  std::map<std::string, int64_t> by_way;

  /// "435 rows serve 1645 of 3207 overloads, ..."
  std::string text(size_t rows) const;
};
ServedCounts count_served(const std::vector<Served>& all);

/// The table as a page of Markdown: docs/ops.md. What was checked is left out: it changes with each soak.
std::string rules_page(const RuleSet& rules, const std::vector<Served>& all);

}  // namespace lockstep::tool
