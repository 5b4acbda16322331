#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/dispatch/backend.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/fuzz/checked_rules.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

using Names = std::vector<std::string>;

/// The in-place ops of LibTorch that follow from each row: "add.Tensor" -> {"add_.Tensor"}.
std::map<std::string, Names> in_place_forms(const RuleSet& rules) {
  std::map<std::string, Names> forms;
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const auto& full : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findSchema(full);
    if (!op || !full.name.starts_with("aten::")) continue;
    const auto& name = op_name(*op);
    const auto* row = rules.find(name);
    if (row && name != row->op) forms[row->op].push_back(name);
  }
  for (auto& [row, names] : forms) std::sort(names.begin(), names.end());
  return forms;
}

std::string traits_of(const Rule& rule) {
  std::string text;
  for (const auto& [trait, name] : {std::pair{Rule::kExact, "exact"}, std::pair{Rule::kRandom, "random"}})
    if (rule.traits & trait) text += fmt::format("{}{}", text.empty() ? "" : " ", name);
  return text;
}

void print_row(const Rule& rule, const Names& in_place, int64_t checked) {
  print_out("{:<26} {:<10} {:<42} {:<9} {:<7} {:>8}{}{}\n", rule.op, rule.family, rule.dims, rule.linearity,
            traits_of(rule), checked, in_place.empty() ? "" : "  ", fmt::join(in_place, " "));
}

nlohmann::ordered_json json_row(const std::string& op, const Rule& rule, const CheckedRules& checked) {
  const bool derived = op != rule.op;
  return {{"op", op},
          {"derived_from", derived ? nlohmann::ordered_json(rule.op) : nlohmann::ordered_json()},
          {"family", rule.family},
          {"dims", rule.dims},
          {"checked", checked.count(op)}};
}

}  // namespace

ExitCode run_rules(const RulesOptions& options) {
  register_backend();
  const auto& rules = *built_in_rules();
  auto forms = in_place_forms(rules);
  const auto checked = read_checked(LOCKSTEP_RULE_CASES);
  auto rows = nlohmann::ordered_json::array();
  print_out("{:<26} {:<10} {:<42} {:<9} {:<7} {:>8}  {}\n", "op", "family", "dims", "linearity", "traits", "checked",
            "in place");
  for (const auto& [op, rule] : rules.rows()) {
    print_row(rule, forms[op], checked.count(op));
    rows.push_back(json_row(op, rule, checked));
    for (const auto& name : forms[op]) rows.push_back(json_row(name, rule, checked));
  }
  print_out("{} rows, {} ops; {}\n", rules.rows().size(), rows.size(), checked.text());
  write_json(options.output,
             {{"rows", rows}, {"checked_when", checked.when}, {"checked_these_rules", checked.is_of_this_code()}});
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
