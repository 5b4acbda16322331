#include "tools/lockstep/commands/rules_text.h"

#include <fmt/format.h>

#include "runtime/dispatch/composed/whole_ops.h"

namespace lockstep::tool {

std::string canonical_text(const Rule& rule) {
  return rule.canonical == Rule::Canonical::kAsIs      ? "as is"
         : rule.canonical == Rule::Canonical::kOwnForm ? "own form"
                                                       : "refuses";
}

std::string canonical_text(const RuleSet& rules, const Served& op) {
  if (op.service.way == Service::kMissing) return "no";
  if (op.service.way == Service::kWhole) return is_canonical_whole_op(op.name) ? "as is" : "refuses";
  const auto* row = rules.find(op.service.row.empty() ? op.name : op.service.row);
  return row ? canonical_text(*row) : "as its parts";
}

std::map<std::string, std::vector<std::string>> forms_of(const std::vector<Served>& all) {
  std::map<std::string, std::vector<std::string>> forms;
  for (const auto& op : all)
    if (op.service.way == Service::kInPlace || op.service.way == Service::kOut)
      forms[op.service.row].push_back(op.name);
  return forms;
}

std::string ServedCounts::text(size_t rows) const {
  std::string ways;
  for (const auto& [way, count] : by_way) ways += fmt::format("{}{} {}", ways.empty() ? "" : ", ", count, way);
  return fmt::format("{} rows serve {} of {} overloads, {} of them functional: {}", rows, served, overloads, functional,
                     ways);
}

ServedCounts count_served(const std::vector<Served>& all) {
  ServedCounts counts;
  for (const auto& op : all) {
    ++counts.overloads, ++counts.by_way[std::string(to_text(op.service.way))];
    if (op.service.way == Service::kMissing) continue;
    ++counts.served;
    counts.functional += op.functional;
  }
  return counts;
}

}  // namespace lockstep::tool
