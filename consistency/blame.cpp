#include "consistency/blame.h"

#include <fmt/format.h>

#include "consistency/place_on_mesh.h"
#include "core/collective_kind.h"
#include "core/phase.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/plan.h"
#include "runtime/planning/two_words.h"
#include "runtime/tensor/spec.h"

namespace lockstep {
namespace {

std::string line(const char* name, const std::string& value) {
  return value.empty() ? "" : fmt::format("  {:<8} {}\n", name, value);
}

}  // namespace

Blame blame_of(const char* kind, const OpId& id) {
  return {.kind = kind, .id = id.text(), .phase = to_text(id.phase), .module = id.module, .op = id.op};
}

Blame blame_of(const char* kind, const OpEvent& event) {
  auto blame = blame_of(kind, event.id);
  if (const auto* rule = event.plan.rule) blame.rule = fmt::format("{} \"{}\"", rule->family, rule->dims);
  blame.layouts = layouts_of(event.plan);
  return blame;
}

Blame blame_of(const OpEvent& event, const Difference& difference, const TensorSpec& result) {
  auto blame = blame_of("op", event);
  describe(blame, difference);
  place_on_mesh(blame, result.layout.mesh(), {partial_axes(result.layout), sharded_axes(event.plan)});
  return blame;
}

Blame blame_of(const MoveEvent& event, const Difference& difference) {
  auto blame = blame_of(event.kind ? "collective" : "local move", event.id);
  blame.layouts = fmt::format("{} -> {}", event.before.text(), event.after.layout.text());
  describe(blame, difference);
  blame.collective = event.kind ? to_text(*event.kind) : "slice or copy";
  const auto& mesh = event.before.layout.mesh();
  if (blame.ranks.empty()) blame.ranks = mesh.ranks();
  blame.axis = mesh.axes()[static_cast<size_t>(event.axis)].name;
  if (event.kind) blame.group = mesh.group(blame.ranks[0], event.axis);
  return blame;
}

void describe(Blame& blame, const Difference& difference) {
  blame.worst = difference.text();
  blame.ranks = difference.ranks;
  blame.pattern = difference.pattern;
}

Difference difference_of_result(const OpEvent& event, const HeldShards& all, const at::Tensor& expected,
                                double tolerance) {
  if (!has_two_words(event.plan.rule)) return difference_of(all, expected, tolerance);
  const auto whole = whole_of(all);
  const PlainTensors guard;
  return difference_of(carried(whole), carried(expected), tolerance);
}

std::string result_name(size_t result, size_t count) {
  return count == 1 ? "result" : fmt::format("result {}", result);
}

std::optional<Blame> compare_op(const OpEvent& event, const std::vector<at::Tensor>& results,
                                const std::vector<at::Tensor>& expected, double tolerance,
                                const std::function<void(size_t, HeldShards&)>& look) {
  std::optional<Blame> blame;
  for (size_t i = 0; i < std::min(results.size(), expected.size()); ++i) {
    auto all = all_shards(local_shards(results[i]));  // of every result: others may not have found the first
    if (look) look(i, all);
    if (blame) continue;
    auto difference = difference_of_result(event, all, expected[i], tolerance);
    if (difference.agrees()) continue;
    difference.kind = result_name(i, results.size());
    difference.name = event.id.op;
    blame = blame_of(event, difference, *all.spec);
  }
  return blame;
}

namespace {

std::string move_line(const Blame& blame) {
  return blame.group.empty() ? fmt::format("{} on {}", blame.collective, blame.axis)
                             : fmt::format("{} over {}, {}", blame.collective, blame.axis, ranks_text(blame.group));
}

/// Along which axis, or where there is none on which ranks.
std::string place_line(const Blame& blame) {
  const auto ranks = blame.ranks.empty() ? "" : "wrong on " + ranks_text(blame.ranks);
  if (blame.axis.empty()) return line("ranks", ranks);
  return line("axis", fmt::format("{}, {}; {}", blame.axis, ranks_text(blame.group), ranks));
}

}  // namespace

std::string Blame::text() const {
  const bool is_move = is_of_move();
  std::string text;
  if (transient) text += line("passing", "run again, the step agrees: what is told here did not come back");
  text += line(is_move ? "move" : "op", id) + (is_move ? line("kind", move_line(*this)) : "");
  text += line("rule", rule) + (is_move ? "" : place_line(*this));
  text += line("layouts", layouts) + line("worst", worst) + line("before", before) + line("limits", limits);
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace lockstep
