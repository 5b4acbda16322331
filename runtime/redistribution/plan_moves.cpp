// Which moves lead from one layout to another: a shortest path over layouts, each axis in its source's placement, in R
// or in its target's.
#include <map>
#include <queue>
#include <tuple>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/redistribute.h"
#include "runtime/redistribution/sent_bytes.h"

namespace lockstep {
namespace {

/// Only the axis that cuts a dimension last can change without the others' data; of an ordered sum it is the one whose
/// ranks hold neighbouring nodes.
bool can_leave(const Layout& layout, int axis) {
  const int what = layout[axis].cuts();
  return what == Placement::kNothing || layout.cutters(what).back() == axis;
}

/// Direct changes of one axis; the others go by way of R.
bool can_move(const Placement& from, const Placement& to) {
  if (from == to || (from.is_partial() && to.is_partial())) return false;
  return !to.is_ordered() && !(from.is_shard() && to.is_partial());
}

class Search {
 public:
  Search(const TensorSpec& source, const TensorSpec& target) : source_(source), target_(target) {}

  std::vector<Move> run() {
    visit(&source_, 0, {});
    while (!frontier_.empty()) {
      const auto [cost, order, spec] = frontier_.top();
      frontier_.pop();
      if (spec == &target_) return path(spec);
      if (cost > best_.at(spec).cost) continue;
      expand(spec, cost);
    }
    LOCKSTEP_CHECK(false, "no way from {} to {}", source_.text(), target_.text());
  }

 private:
  struct Reached {
    double cost;
    Move by;
  };
  /// Ties go to what was reached first: addresses must not decide in which order axes are reduced.
  using Entry = std::tuple<double, int, const TensorSpec*>;

  void expand(const TensorSpec* spec, double cost) {
    for (int axis = 0; axis < spec->layout.axis_count(); ++axis) {
      if (!can_leave(spec->layout, axis)) continue;
      for (const auto& wish : {Placement::replicate(), target_.layout[axis]}) {
        if (!can_move(spec->layout[axis], wish)) continue;
        const auto next = spec->layout.with(axis, wish);
        if (next.mixes_reductions()) continue;
        const Move move{axis, spec, with_layout(*spec, next)};
        constexpr double kPerStep = 1e-6;
        visit(move.after, cost + mean_sent_bytes(move) + kPerStep, move);
      }
    }
  }

  void visit(const TensorSpec* spec, double cost, const Move& by) {
    const auto [entry, is_new] = best_.try_emplace(spec, Reached{cost, by});
    if (!is_new && entry->second.cost <= cost) return;
    entry->second = {cost, by};
    frontier_.push({cost, reached_++, spec});
  }

  std::vector<Move> path(const TensorSpec* spec) const {
    std::vector<Move> moves;
    for (; spec != &source_; spec = moves.back().before) moves.push_back(best_.at(spec).by);
    return {moves.rbegin(), moves.rend()};
  }

  const TensorSpec& source_;
  const TensorSpec& target_;
  std::map<const TensorSpec*, Reached> best_;
  int reached_ = 0;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> frontier_;
};

/// The redistributions that a World has found a way for. A World::part().
struct MovesFound {
  explicit MovesFound(World&) {}
  std::map<std::pair<const TensorSpec*, const TensorSpec*>, std::vector<Move>> paths;
};

}  // namespace

std::vector<Move> plan_moves(const TensorSpec& source, const TensorSpec& target) {
  // Strides say nothing about how a tensor lies on the mesh.
  const auto* from = with_layout(source, source.layout);
  const auto* to = with_layout(target, target.layout);
  auto& cache = source.layout.mesh().world().part<MovesFound>().paths;
  const auto found = cache.find({from, to});
  if (found != cache.end()) return found->second;
  LOCKSTEP_CHECK(source.sizes == target.sizes && source.dtype == target.dtype, "{} to {}", source.text(),
                 target.text());
  return cache.emplace(std::pair{from, to}, Search(*from, *to).run()).first->second;
}

}  // namespace lockstep
