#include "runtime/rule_set.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

RuleSet::RuleSet(std::span<const Rule> rules) {
  for (const auto& rule : rules) LOCKSTEP_CHECK(rows_.emplace(rule.op, rule).second, "two rules for {}", rule.op);
}

namespace {

std::vector<Rule> all_rows() {
  std::vector<Rule> all;
  for (const auto family : {rules::pointwise, rules::views, rules::matmul, rules::reductions, rules::rows,
                            rules::embedding, rules::attention, rules::random, rules::factories, rules::optimizer})
    for (const auto& rule : family()) all.push_back(rule);
  return all;
}

std::vector<Rule> canonical_rows() {
  auto all = all_rows();
  for (const auto& form : rules::canonical()) {
    const auto row =
        std::find_if(all.begin(), all.end(), [&](const Rule& rule) { return std::string_view(rule.op) == form.op; });
    LOCKSTEP_CHECK(row != all.end(), "a canonical form for {}, which has no rule", form.op);
    if (form.local) row->local = form.local;
    row->traits |= form.traits;
  }
  return all;
}

}  // namespace

std::shared_ptr<const RuleSet> RuleSet::built_in(Numerics numerics) {
  static const auto native = std::make_shared<const RuleSet>(all_rows());
  static const auto canonical = std::make_shared<const RuleSet>(canonical_rows());
  return numerics == Numerics::kNative ? native : canonical;
}

std::shared_ptr<const RuleSet> RuleSet::with(const Rule& rule) const {
  auto copy = std::make_shared<RuleSet>(*this);
  copy->rows_.insert_or_assign(rule.op, rule);
  return copy;
}

const Rule* RuleSet::find(const std::string& op) const {
  const auto found = rows_.find(op);
  if (found != rows_.end()) return &found->second;
  const auto functional = functional_name(op);
  if (functional == op) return nullptr;
  const auto* rule = find(functional);
  // squeeze_ and its like write no elements: they change what a tensor's sizes are, which a plan cannot.
  return rule && std::string_view(rule->family) == "view" ? nullptr : rule;
}

std::string functional_name(const std::string& op) {
  const auto dot = std::min(op.find('.'), op.size());
  if (dot == 0 || op[dot - 1] != '_' || op.ends_with("__")) return op;
  if (op.starts_with("pow_.")) return "pow.Tensor_" + op.substr(dot + 1);  // the one family with names of its own
  return op.substr(0, dot - 1) + op.substr(dot);
}

}  // namespace lockstep
