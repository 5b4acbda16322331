#include "runtime/planning/rules/built_in_rules.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/own_ops/own_ops.h"
#include "runtime/planning/rules/canonical/canonical_forms.h"

namespace lockstep {
namespace {

std::vector<CanonicalRule> forms_of_libtorchs_ops() {
  auto all = rules::canonical();
  for (const auto family : {rules::canonical_embedding, rules::canonical_reductions})
    for (const auto& form : family()) all.push_back(form);
  return all;
}

bool is_in(std::span<const std::string_view> names, std::string_view op) {
  return std::binary_search(names.begin(), names.end(), op);
}

/// The rows, with what canonical numerics makes of each.
std::vector<Rule> all_rows() {
  const auto forms = forms_of_libtorchs_ops();
  std::vector<Rule> all;
  for (const auto family :
       {rules::pointwise, rules::pointwise_functions, rules::along_dims, rules::matrices, rules::windows, rules::losses,
        rules::convolution, rules::spectra, rules::indexing, rules::views, rules::matmul, rules::reductions,
        rules::rows, rules::embedding, rules::random, rules::factories})
    for (const auto& rule : family()) all.push_back(rule);
  for (auto& rule : all) {
    if (is_in(rules::canonical_as_is(), rule.op)) rule.canonical = Rule::Canonical::kAsIs;
    rule.canonical_on_gpu = is_in(rules::canonical_on_gpu(), rule.op);
  }
  for (const auto& op : all_own_ops()) {
    all.push_back(op.rule);
    all.back().canonical_on_gpu = op.canonical.on_gpu;
    all.back().canonical = op.canonical.local ? Rule::Canonical::kOwnForm : Rule::Canonical::kAsIs;
  }
  for (auto& rule : all) {
    for (const auto& form : forms)
      if (std::string_view(form.op) == rule.op) rule.canonical = Rule::Canonical::kOwnForm;
    if (rule.canonical == Rule::Canonical::kRefuses) rule.instead = rules::instead_of(rule.op);
  }
  return all;
}

std::vector<CanonicalRule> all_canonical_forms() {
  auto all = forms_of_libtorchs_ops();
  for (const auto& op : all_own_ops()) all.push_back({op.rule.op, op.canonical.local, op.canonical.traits});
  return all;
}

std::vector<Rule> canonical_rows() {
  auto all = all_rows();
  for (const auto& change : all_canonical_forms()) {
    const auto row =
        std::find_if(all.begin(), all.end(), [&](const Rule& rule) { return std::string_view(rule.op) == change.op; });
    LOCKSTEP_CHECK(row != all.end(), "a canonical form for {}, which has no rule", change.op);
    if (change.local) row->local = change.local;
    row->traits |= change.traits;
  }
  for (auto& rule : all)
    if (!is_own_op(rule) && !rules::takes_complex(rule.op, rule.canonical == Rule::Canonical::kOwnForm))
      rule.traits |= Rule::kRealOnly;
  return all;
}

}  // namespace

std::shared_ptr<const RuleSet> built_in_rules(Numerics numerics) {
  static const auto native = std::make_shared<const RuleSet>(all_rows());
  static const auto canonical = std::make_shared<const RuleSet>(canonical_rows());
  return numerics == Numerics::kNative ? native : canonical;
}

}  // namespace lockstep
