#include "runtime/planning/rule_set.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

RuleSet::RuleSet(std::span<const Rule> rules) {
  for (const auto& rule : rules) LOCKSTEP_CHECK(rows_.emplace(rule.op, rule).second, "two rules for {}", rule.op);
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
  return rule && (rule->traits & Rule::kRearranges) ? nullptr : rule;
}

std::string functional_name(const std::string& op) {
  const auto dot = std::min(op.find('.'), op.size());
  if (dot == 0 || op[dot - 1] != '_' || op.ends_with("__")) return op;
  if (op.starts_with("pow_.")) return "pow.Tensor_" + op.substr(dot + 1);  // names of their own
  if (op == "bernoulli_.float") return "bernoulli.p";
  return op.substr(0, dot - 1) + op.substr(dot);
}

void require_canonical_form(const Rule& rule, std::string_view op, bool is_on_gpu) {
  if (rule.canonical == Rule::Canonical::kRefuses)
    fail<BadInput>("{} has no canonical form; set numerics.mode = \"native\", or use {}", op,
                   rule.instead ? rule.instead : "an op that has one (docs/numerics.md)");
  if (is_on_gpu && !rule.canonical_on_gpu) refuse_on_gpu(op);
}

void refuse_on_gpu(std::string_view op) {
  fail<BadInput>("{} has no canonical form on a GPU; set numerics.mode = \"native\", or training.device = \"cpu\"", op);
}

}  // namespace lockstep
