// The op table as a page: docs/ops.md.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tools/lockstep/commands/rules_text.h"

namespace lockstep::tool {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kHead = R"(# Ops

`lockstep rules --page docs/ops.md` writes this page. {}.

| served | is |
|---|---|
| row | a sharding rule of its own ([rules.md](rules.md)) |
| in place, out | what follows from a row through the schema |
| foreach | tensor by tensor |
| decomposition | LibTorch's own, into ops that are served |
| kernel | put together of served ops by a kernel of Lockstep's |
| whole | every rank gathers the operands and computes all of it: sizes that depend on values, or nothing to cut |

Canonical numerics ([numerics.md](numerics.md)): *as is*, LibTorch's call gives the same bits for every slice, offset and mesh;
*own form*, another local call does; *refuses*, with what to write instead where that is known. How many cases each row was
checked with is told by `lockstep rules`.
)";

std::string code(const Names& names) {
  std::string text;
  for (const auto& name : names) text += fmt::format("{}`{}`", text.empty() ? "" : " ", name);
  return text;
}

std::string canonical_cell(const Rule& rule) {
  return canonical_text(rule) + (rule.instead ? fmt::format(": `{}`", rule.instead) : "");
}

std::string family_table(const std::vector<const Rule*>& rows, std::map<std::string, Names>& forms) {
  std::string text = "\n| op | dims | linearity | canonical | forms |\n|---|---|---|---|---|\n";
  for (const auto* rule : rows)
    text += fmt::format("| `{}` | `{}` | `{}` | {} | {} |\n", rule->op, rule->dims, rule->linearity,
                        canonical_cell(*rule), code(forms[rule->op]));
  return text;
}

std::string section(std::string_view title, const Names& names) {
  return names.empty() ? "" : fmt::format("\n## {}\n\n{}\n", title, code(names));
}

Names served_as(const std::vector<Served>& all, Service::Way way) {
  Names names;
  for (const auto& op : all)
    if (op.service.way == way) names.push_back(op.name);
  return names;
}

Names whole_ops(const RuleSet& rules, const std::vector<Served>& all, bool canonical) {
  Names names;
  for (const auto& op : all)
    if (op.service.way == Service::kWhole && (canonical_text(rules, op) == "as is") == canonical)
      names.push_back(op.name);
  return names;
}

/// Those of one reason behind each other, the most common reason first.
std::string missing_table(const std::vector<Served>& all) {
  std::map<std::string, Names> by_reason;
  for (const auto& op : all)
    if (op.service.way == Service::kMissing) {
      const auto& reason = op.service.reason;
      const auto colon = reason.find(": ");  // an out form's begins with the functional op
      const bool is_of_another = colon != reason.npos && reason.find(' ') == colon + 1;
      by_reason[is_of_another ? reason.substr(colon + 2) : reason].push_back(op.name);
    }
  std::vector<std::pair<std::string, Names>> sorted(by_reason.begin(), by_reason.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& one, const auto& other) { return one.second.size() > other.second.size(); });
  std::string text = "\n## Without a rule\n\n| why | overloads |\n|---|---|\n";
  for (const auto& [reason, names] : sorted)
    text += fmt::format("| {} ({}) | {} |\n", reason, names.size(), code(names));
  return text;
}

}  // namespace

std::string rules_page(const RuleSet& rules, const std::vector<Served>& all) {
  auto forms = forms_of(all);
  std::map<std::string, std::vector<const Rule*>> families;
  for (const auto& [op, rule] : rules.rows()) families[rule.family].push_back(&rule);
  std::string text = fmt::format(kHead, count_served(all).text(rules.rows().size()));
  for (const auto& [family, rows] : families) text += fmt::format("\n## {}\n{}", family, family_table(rows, forms));
  text += section("Decompositions", served_as(all, Service::kDecomposition));
  text += section("Foreach", served_as(all, Service::kForeach));
  text += section("Kernels", served_as(all, Service::kKernel));
  text += section("Whole, canonical as is", whole_ops(rules, all, true));
  text += section("Whole, refused by canonical numerics", whole_ops(rules, all, false));
  return text + missing_table(all);
}

}  // namespace lockstep::tool
