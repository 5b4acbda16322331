#include "consistency/blame.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "core/collective_kind.h"
#include "core/phase.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/rule.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/spec.h"

namespace lockstep {
namespace {

std::string line(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("  {:<8} {}\n", name, value);
}

}  // namespace

Blame blame_of(const char* kind, const OpEvent& event) {
  Blame blame;
  blame.kind = kind;
  blame.id = event.id.text(), blame.op = event.id.op;
  blame.phase = to_text(event.id.phase), blame.module = event.id.module;
  if (const auto* rule = event.plan.rule) blame.rule = fmt::format("{} \"{}\"", rule->family, rule->dims);
  blame.layouts = layouts_of(event.plan);
  return blame;
}

Blame blame_of(const MoveEvent& event, const Difference& difference) {
  Blame blame;
  blame.kind = event.kind ? "collective" : "local move";
  blame.id = event.id.text(), blame.op = event.id.op;
  blame.phase = to_text(event.id.phase), blame.module = event.id.module;
  blame.layouts = fmt::format("{} -> {}", event.before.text(), event.after.layout.text());
  const auto& mesh = event.before.layout.mesh();
  blame.axis = mesh.axes()[static_cast<size_t>(event.axis)].name;
  describe(blame, difference);
  blame.collective = event.kind ? to_text(*event.kind) : "slice or copy";
  if (event.kind) blame.group = mesh.group(blame.ranks.empty() ? mesh.ranks()[0] : blame.ranks[0], event.axis);
  return blame;
}

void describe(Blame& blame, const Difference& difference) {
  blame.worst = difference.text();
  blame.ranks = difference.ranks;
  blame.pattern = difference.pattern;
}

namespace {

/// One integer has many pairs of words: the one with a low word below 2^32.
at::Tensor carried(const at::Tensor& words) {
  const PlainTensors guard;
  const auto low = words[1], carry = at::bitwise_right_shift(low, int64_t{32});
  return at::stack({words[0] + carry, low - at::bitwise_left_shift(carry, int64_t{32})});
}

}  // namespace

Difference difference_of_result(const OpEvent& event, const HeldShards& all, const at::Tensor& expected,
                                double tolerance) {
  const bool is_pair = event.plan.rule && (event.plan.rule->traits & Rule::kTwoWords) != 0;
  return is_pair ? difference_of(carried(whole_of(all)), carried(expected), tolerance)
                 : difference_of(all, expected, tolerance);
}

std::string result_name(size_t result, size_t count) {
  return count == 1 ? "result" : fmt::format("result {}", result);
}

std::optional<Blame> compare_op(const OpEvent& event, const std::vector<at::Tensor>& results,
                                const std::vector<at::Tensor>& expected, double tolerance) {
  std::optional<Blame> blame;
  for (size_t i = 0; i < std::min(results.size(), expected.size()); ++i) {
    const auto all = all_shards(local_shards(results[i]));  // of every result: others may not have found the first
    if (blame) continue;
    auto difference = difference_of_result(event, all, expected[i], tolerance);
    if (difference.agrees()) continue;
    difference.kind = result_name(i, results.size());
    difference.name = event.id.op;
    describe(blame.emplace(blame_of("op", event)), difference);
  }
  return blame;
}

std::string Blame::text() const {
  std::string text;
  if (transient) text += line("passing", "run again, the step agrees: what is told here did not come back");
  text += line(kind == "collective" || kind == "local move" ? "move" : "op", id);
  if (!collective.empty())
    text += line("kind", group.empty() ? fmt::format("{} on {}", collective, axis)
                                       : fmt::format("{} over {}, {}", collective, axis, ranks_text(group)));
  text += line("rule", rule) + line("layouts", layouts) + line("worst", worst) + line("before", before);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace lockstep
