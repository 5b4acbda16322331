#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/files/atomic_file.h"
#include "runtime/dispatch/backend.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/commands/rules_columns.h"
#include "tools/lockstep/commands/rules_text.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/fuzz/checked_rules.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

std::string traits_of(const Rule& rule) {
  std::string text;
  for (const auto& [trait, name] : {std::pair{Rule::kExact, "exact"}, std::pair{Rule::kRandom, "random"}})
    if (rule.traits & trait) text += fmt::format("{}{}", text.empty() ? "" : " ", name);
  return text;
}

using Names = std::vector<std::string>;

void print_row(const Rule& rule, const Names& forms, int64_t checked) {
  print_rules_line({rule.op, rule.family, rule.dims, rule.linearity, traits_of(rule), canonical_text(rule),
                    std::to_string(checked), fmt::format("{}", fmt::join(forms, " "))});
}

nlohmann::ordered_json json_row(const RuleSet& rules, const Served& op, const CheckedRules& checked) {
  nlohmann::ordered_json row{{"op", op.name},
                             {"served", to_text(op.service.way)},
                             {"functional", op.functional},
                             {"canonical", canonical_text(rules, op)},
                             {"checked", checked.count(op.name)}};
  if (op.service.way == Service::kMissing) row["reason"] = op.service.reason;
  row["derived_from"] = op.service.row.empty() || op.service.row == op.name ? nlohmann::ordered_json()
                                                                            : nlohmann::ordered_json(op.service.row);
  if (const auto* rule = op.service.row.empty() ? nullptr : rules.find(op.service.row)) {
    row["family"] = rule->family;
    row["dims"] = rule->dims;
    if (rule->instead) row["instead"] = rule->instead;
  }
  return row;
}

void print_missing(const std::vector<Served>& all) {
  for (const auto& op : all)
    if (op.service.way == Service::kMissing) print_out("{:<52} {}\n", op.name, op.service.reason);
}

void print_table(const RuleSet& rules, const std::vector<Served>& all, const CheckedRules& checked) {
  auto forms = forms_of(all);
  for (const auto& [op, rule] : rules.rows()) print_row(rule, forms[op], checked.count(op));
  for (const auto& op : all)
    if (op.service.row.empty() && op.service.way != Service::kMissing)
      print_out("{:<26} {:<14} {}\n", op.name, to_text(op.service.way), fmt::join(forms[op.name], " "));
}

nlohmann::ordered_json json_counts(const ServedCounts& counts) {
  return {{"overloads", counts.overloads},
          {"served", counts.served},
          {"functional", counts.functional},
          {"by_way", counts.by_way}};
}

}  // namespace

ExitCode run_rules(const RulesOptions& options) {
  register_backend();
  const auto& rules = *built_in_rules();
  const auto all = all_served(rules);
  const auto checked = read_checked(LOCKSTEP_RULE_CASES);
  const auto counts = count_served(all);
  if (options.page) write_file_atomically(*options.page, rules_page(rules, all));
  if (options.missing)
    print_missing(all);
  else
    print_table(rules, all, checked);
  print_out("{}\n{}\n", counts.text(rules.rows().size()), checked.text());
  auto rows = nlohmann::ordered_json::array();
  for (const auto& op : all) rows.push_back(json_row(rules, op, checked));
  write_json(options.output, {{"counts", json_counts(counts)},
                              {"rows", rows},
                              {"checked_when", checked.when},
                              {"checked_these_rules", checked.is_of_this_code()}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
