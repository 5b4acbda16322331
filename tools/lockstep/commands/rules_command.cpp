#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/dispatch/backend.h"
#include "runtime/dispatch/composed/whole_ops.h"
#include "runtime/dispatch/service.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/fuzz/checked_rules.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

std::string canonical_text(const Rule& rule) {
  return rule.canonical == Rule::Canonical::kAsIs      ? "as is"
         : rule.canonical == Rule::Canonical::kOwnForm ? "own form"
                                                       : "refuses";
}

/// What canonical numerics makes of an overload.
std::string canonical_text(const RuleSet& rules, const Served& op) {
  if (op.service.way == Service::kMissing) return "no";
  if (op.service.way == Service::kWhole) return is_canonical_whole_op(op.name) ? "as is" : "refuses";
  const auto* row = rules.find(op.service.row.empty() ? op.name : op.service.row);
  return row ? canonical_text(*row) : "as its parts";
}

std::string traits_of(const Rule& rule) {
  std::string text;
  for (const auto& [trait, name] : {std::pair{Rule::kExact, "exact"}, std::pair{Rule::kRandom, "random"}})
    if (rule.traits & trait) text += fmt::format("{}{}", text.empty() ? "" : " ", name);
  return text;
}

using Names = std::vector<std::string>;

/// The overloads that follow from each row or other functional overload.
std::map<std::string, Names> forms_of(const std::vector<Served>& all) {
  std::map<std::string, Names> forms;
  for (const auto& op : all)
    if (op.service.way == Service::kInPlace || op.service.way == Service::kOut)
      forms[op.service.row].push_back(op.name);
  return forms;
}

void print_row(const Rule& rule, const Names& forms, int64_t checked) {
  print_out("{:<26} {:<14} {:<42} {:<9} {:<7} {:<9} {:>8}{}{}\n", rule.op, rule.family, rule.dims, rule.linearity,
            traits_of(rule), canonical_text(rule), checked, forms.empty() ? "" : "  ", fmt::join(forms, " "));
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
  }
  return row;
}

nlohmann::ordered_json counts(const std::vector<Served>& all) {
  std::map<std::string, int64_t> ways;
  int64_t served = 0, functional = 0;
  for (const auto& op : all) {
    ++ways[std::string(to_text(op.service.way))];
    if (op.service.way == Service::kMissing) continue;
    ++served;
    functional += op.functional;
  }
  return {{"overloads", all.size()}, {"served", served}, {"functional", functional}, {"by_way", ways}};
}

void print_missing(const std::vector<Served>& all) {
  for (const auto& op : all)
    if (op.service.way == Service::kMissing) print_out("{:<52} {}\n", op.name, op.service.reason);
}

void print_table(const RuleSet& rules, const std::vector<Served>& all, const CheckedRules& checked) {
  auto forms = forms_of(all);
  print_out("{:<26} {:<14} {:<42} {:<9} {:<7} {:<9} {:>8}  {}\n", "op", "family", "dims", "linearity", "traits",
            "canonical", "checked", "forms");
  for (const auto& [op, rule] : rules.rows()) print_row(rule, forms[op], checked.count(op));
  for (const auto& op : all)
    if (op.service.way == Service::kDecomposition || op.service.way == Service::kWhole)
      print_out("{:<26} {:<14} {}\n", op.name, to_text(op.service.way), fmt::join(forms[op.name], " "));
}

void print_counts(const RuleSet& rules, const nlohmann::ordered_json& counts) {
  std::string ways;
  for (const auto& [way, count] : counts["by_way"].items())
    ways += fmt::format("{}{} {}", ways.empty() ? "" : ", ", count.get<int64_t>(), way);
  print_out("{} rows serve {} of {} overloads, {} of them functional: {}\n", rules.rows().size(),
            counts["served"].get<int64_t>(), counts["overloads"].get<int64_t>(), counts["functional"].get<int64_t>(),
            ways);
}

}  // namespace

ExitCode run_rules(const RulesOptions& options) {
  register_backend();
  const auto& rules = *built_in_rules();
  const auto all = all_served(rules);
  const auto checked = read_checked(LOCKSTEP_RULE_CASES);
  const auto sums = counts(all);
  if (options.missing)
    print_missing(all);
  else
    print_table(rules, all, checked);
  print_counts(rules, sums);
  print_out("{}\n", checked.text());
  auto rows = nlohmann::ordered_json::array();
  for (const auto& op : all) rows.push_back(json_row(rules, op, checked));
  write_json(options.output, {{"counts", sums},
                              {"rows", rows},
                              {"checked_when", checked.when},
                              {"checked_these_rules", checked.is_of_this_code()}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
