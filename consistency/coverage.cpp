#include "consistency/coverage.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/collective_kind.h"
#include "runtime/context/world.h"
#include "runtime/planning/choose_layouts.h"
#include "runtime/planning/make_plan.h"
#include "runtime/planning/rule.h"
#include "runtime/planning/rule_set.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/redistribution/collective.h"
#include "runtime/redistribution/local_move.h"
#include "runtime/tensor/mesh.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

std::string text_of(const Placement& placement) {
  return placement.is_replicate() ? "R" : placement.is_partial() ? "P" : fmt::format("S({})", placement.dim);
}

std::string text_of(const std::vector<Placement>& operands, const std::vector<Placement>& results) {
  std::string text;
  for (const auto& operand : operands) text += (text.empty() ? "" : ",") + text_of(operand);
  text += " ->";
  for (size_t r = 0; r < results.size(); ++r) text += (r == 0 ? " " : ",") + text_of(results[r]);
  return text;
}

/// How the plan's op ran on one axis. A plain operand is as good as whole.
std::string on_axis(const Plan& plan, int axis) {
  std::vector<Placement> operands, results;
  for (const auto* spec : plan.wanted) operands.push_back(spec ? spec->layout[axis] : Placement::replicate());
  for (const auto* spec : plan.results) results.push_back(spec->layout[axis]);
  if (plan.written >= 0 && results.empty()) results.push_back(operands[static_cast<size_t>(plan.written)]);
  return text_of(operands, results);
}

/// The call as its rule saw it.
Call call_of(const OpEvent& event) {
  Call call{op_name(event.op), event.op.schema(), event.arguments};
  call.slots = event.plan.slots;
  for_each_tensor(event.arguments, [&](const Slot&, const at::Tensor& tensor) {
    call.operand_sizes.push_back(tensor.sizes().vec());
    call.operand_dtypes.push_back(tensor.scalar_type());
  });
  for (const auto* spec : event.plan.results) call.results.push_back({spec->sizes, {}, spec->dtype});
  return call;
}

/// Whether the ranks' shards of it differ in size.
bool is_uneven(const TensorSpec& spec, int axis) {
  if (!spec.layout[axis].is_shard()) return false;
  const int dim = spec.layout[axis].dim;
  std::set<int64_t> lengths;
  for (const int rank : spec.layout.mesh().ranks())
    lengths.insert(spec.layout.cut(rank, dim, spec.sizes[static_cast<size_t>(dim)]).length);
  return lengths.size() > 1;
}

std::string kind_text(const Placement& placement) {
  return placement.is_replicate() ? "R" : placement.is_partial() ? "P" : "S";
}

std::string move_text(const TensorSpec& before, const TensorSpec& after, int axis, const CollectiveKind* kind) {
  const auto way = kind ? fmt::format("by {}", to_text(*kind)) : "without communication";
  return fmt::format("{} -> {} {}{}", kind_text(before.layout[axis]), kind_text(after.layout[axis]), way,
                     is_uneven(before, axis) || is_uneven(after, axis) ? ", uneven shards" : "");
}

/// The moves that lead from any placement of a matrix on two ranks to any other.
void add_moves(const Mesh& mesh, int64_t rows, std::set<std::string>& all) {
  const Placement placements[] = {Placement::replicate(), Placement::shard(0), Placement::shard(1),
                                  Placement::partial()};
  for (const auto& from : placements)
    for (const auto& to : placements) {
      if (from == to || (to.is_partial() && from.is_shard())) continue;
      const auto spec_of = [&](const Placement& placement) {
        return mesh.specs().intern(Layout(mesh, {placement}), {rows, rows}, c10::kFloat);
      };
      for (const auto& move : plan_moves(*spec_of(from), *spec_of(to))) {
        const auto kind = is_local(move) ? CollectiveKind::kAllReduce : kind_of(move);
        all.insert(move_text(*move.before, *move.after, move.axis, is_local(move) ? nullptr : &kind));
      }
    }
}

template <class Container>
void unite(Container& mine, const Container& other) {
  mine.insert(other.begin(), other.end());
}

}  // namespace

void Coverage::add(const Coverage& other) {
  unite(rows, other.rows), unite(moves, other.moves), unite(collectives, other.collectives);
  for (const auto& [kind, sizes] : other.group_sizes) unite(group_sizes[kind], sizes);
  for (const auto& [row, all] : other.candidates)
    for (const auto& [text, is_reached] : all) candidates[row][text] |= is_reached;
}

int64_t Coverage::candidate_count() const {
  int64_t count = 0;
  for (const auto& [row, all] : candidates) count += static_cast<int64_t>(all.size());
  return count;
}

int64_t Coverage::reached_candidates() const {
  int64_t count = 0;
  for (const auto& [row, all] : candidates)
    count += std::ranges::count_if(all, [](const auto& candidate) { return candidate.second; });
  return count;
}

std::vector<std::string> all_rows() {
  std::vector<std::string> rows;
  for (const auto& [op, rule] : built_in_rules()->rows()) rows.push_back(op);
  return rows;
}

std::vector<std::string> all_moves() {
  World::Options options;
  options.rank_count = 2;
  World world(options);
  std::set<std::string> all;
  for (const int64_t rows : {4, 3}) add_moves(world.mesh("two=2"), rows, all);
  return {all.begin(), all.end()};
}

std::vector<std::string> all_collectives() { return {std::begin(kCollectiveNames), std::end(kCollectiveNames)}; }

std::vector<std::string> missing(const std::vector<std::string>& all, const std::set<std::string>& reached) {
  std::vector<std::string> names;
  for (const auto& name : all)
    if (!reached.contains(name)) names.push_back(name);
  return names;
}

namespace {

/// What a family has, and what of it was not reached.
struct Share {
  std::vector<std::string> lacking = {};
  int64_t all = 0;
};
using Families = std::map<std::string, Share>;

Gaps gaps_of(const Families& families) {
  Gaps names, counts{{}, false};
  for (const auto& [name, family] : families) {
    names.items.insert(names.items.end(), family.lacking.begin(), family.lacking.end());
    if (!family.lacking.empty())
      counts.items.push_back(fmt::format("{} {} of {}", name, family.lacking.size(), family.all));
  }
  return names.items.size() <= kMostGapNames ? names : counts;
}

}  // namespace

Gaps gaps_of_rows(const Coverage& coverage) {
  Families families;
  for (const auto& [op, rule] : built_in_rules()->rows()) {
    auto& family = families[rule.family];
    ++family.all;
    if (!coverage.rows.contains(op)) family.lacking.push_back(op);
  }
  return gaps_of(families);
}

Gaps gaps_of_candidates(const Coverage& coverage) {
  Families families;
  for (const auto& [row, all] : coverage.candidates) {
    const auto* rule = built_in_rules()->find(row);
    auto& family = families[rule ? rule->family : row];
    family.all += static_cast<int64_t>(all.size());
    for (const auto& [text, is_reached] : all)
      if (!is_reached) family.lacking.push_back(fmt::format("{} {}", row, text));
  }
  return gaps_of(families);
}

void CoverageObserver::after_op(const OpEvent& event, std::span<const c10::IValue>) {
  if (!seen_.insert(&event.plan).second) return;
  if (!event.plan.rule) return;  // no row of any table
  coverage_.rows.insert(event.plan.rule->op);
  // What reads sizes alone lies as its operand, whatever that is: there is no choice of candidates.
  if (!event.plan.given.empty() && (event.plan.rule->traits & Rule::kReadsSizesOnly) == 0) note_candidates(event);
}

void CoverageObserver::note_candidates(const OpEvent& event) {
  auto& all = coverage_.candidates[event.plan.rule->op];
  if (event.plan.results.empty()) return;  // what is written in place lies as it lay
  const auto sharding = op_sharding_of(*event.plan.rule, call_of(event));
  for (const auto& candidate : candidates(sharding, {Reduction::kSum}))
    all[text_of(candidate.operands, candidate.results)];
  const auto& mesh = event.plan.results[0]->layout.mesh();
  for (int axis = 0; axis < mesh.axis_count(); ++axis)
    if (const auto found = all.find(on_axis(event.plan, axis)); mesh.axis_size(axis) > 1 && found != all.end())
      found->second = true;
}

void CoverageObserver::after_move(const MoveEvent& event) {
  if (!event.kind || *event.kind != CollectiveKind::kTransfer)  // that changes no layout
    coverage_.moves.insert(move_text(event.before, event.after, event.axis, event.kind));
  if (event.kind) note_collective(*event.kind, event.before.layout.mesh(), event.axis);
}

/// A move of it is told where both ends are in this process; others talk to each other outside of ops, too.
void CoverageObserver::before_collective(const CollectiveEvent& event) {
  if (event.kind == CollectiveKind::kTransfer) note_collective(event.kind, event.mesh, event.axis);
}

void CoverageObserver::note_collective(CollectiveKind kind, const Mesh& mesh, int axis) {
  coverage_.collectives.insert(to_text(kind));
  coverage_.group_sizes[to_text(kind)].insert(mesh.axis_size(axis));
}

}  // namespace lockstep
