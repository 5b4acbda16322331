#include "runtime/planning/choose_layouts.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "runtime/planning/ordered_sums.h"
#include "runtime/redistribution/sent_bytes.h"

namespace lockstep {
namespace {

constexpr double kImpossible = std::numeric_limits<double>::infinity();

bool is_low_precision(c10::ScalarType dtype) { return dtype == c10::kBFloat16 || dtype == c10::kHalf; }

bool cuts_alike_with(const TensorSpec& spec, int axis, int dim, int64_t unit) {
  auto placements = spec.layout.placements();
  placements[static_cast<size_t>(axis)].unit = unit;
  const Layout other(spec.layout.mesh(), std::move(placements));
  const int64_t size = spec.sizes[static_cast<size_t>(dim)];
  const auto& ranks = spec.layout.mesh().ranks();
  return std::all_of(ranks.begin(), ranks.end(),
                     [&](int rank) { return other.cut(rank, dim, size) == spec.layout.cut(rank, dim, size); });
}

/// The unit in label terms of an operand's cut of `dim` by `axis`, if the cut falls between the label's units. Layouts
/// keep the least unit that cuts alike, which may be none of whole labels.
std::optional<int64_t> label_unit(const TensorSpec& spec, int axis, int dim, int64_t factor) {
  const int64_t given = spec.layout[axis].unit, step = std::lcm(given, factor);
  if (step == given) return given / factor;
  if (cuts_alike_with(spec, axis, dim, factor)) return 1;
  for (int64_t unit = step; unit <= spec.sizes[static_cast<size_t>(dim)] + step; unit += step)
    if (cuts_alike_with(spec, axis, dim, unit)) return unit / factor;
  return std::nullopt;
}

bool already_cut(const TensorSpec& spec, int axis, const Placement& want) {
  return spec.layout[axis].is_shard(want.dim) && label_unit(spec, axis, want.dim, want.unit).has_value();
}

class AxisChooser {
 public:
  AxisChooser(const LayoutQuery& input, int axis)
      : input_(input), axis_(axis), ranks_(std::max(2.0, static_cast<double>(input.mesh.axis_size(axis)))) {}

  /// Null if none is allowed.
  const Candidate* cheapest(const std::vector<Candidate>& all) const {
    const Candidate* best = nullptr;
    double best_cost = kImpossible;
    for (const auto& candidate : all) {
      const double cost = allowed(candidate) ? cost_of(candidate) : kImpossible;
      if (cost < best_cost) {
        best_cost = cost;
        best = &candidate;
      }
    }
    return best;
  }

 private:
  const Placement& have(size_t i) const { return input_.given[i]->layout[axis_]; }

  bool stays(size_t i, const Placement& want) const {
    if (!input_.given[i]) return want.is_replicate();
    if (want.is_shard()) return already_cut(*input_.given[i], axis_, want);
    return have(i) == want;
  }

  bool allowed(const Candidate& candidate) const {
    bool takes_partial = false, cuts = false, cut_before = false, has_partial = false, others_move = false;
    for (size_t i = 0; i < candidate.operands.size(); ++i) {
      const auto& want = candidate.operands[i];
      const bool still = stays(i, want);
      if (!input_.given[i] && !still) return false;
      takes_partial |= want.is_partial();
      has_partial |= want.is_partial() && still;
      cuts |= want.is_shard();
      cut_before |= want.is_shard() && still;
      others_move |= !still && !(want.is_partial() && have(i).is_replicate());
      if (static_cast<int>(i) == input_.written && (!still || !keeps_result(candidate, i))) return false;
      if (want.is_partial() && rounds_partial(i)) return false;
    }
    if (cuts && !cut_before) return false;
    if (input_.canonical && !keeps_order(candidate)) return false;
    if (takes_partial && !cuts && (!has_partial || others_move)) return false;
    return true;
  }

  /// The result of an in-place op lies as the operand that it is written to.
  bool keeps_result(const Candidate& candidate, size_t written) const {
    const auto &result = candidate.results[0], &operand = candidate.operands[written];
    return result.kind == operand.kind && result.reduction == operand.reduction && result.dim == operand.dim;
  }

  bool keeps_order(const Candidate& candidate) const {
    for (size_t i = 0; i < candidate.operands.size(); ++i)
      if (candidate.operands[i].is_partial() && !may_stay_partial(i)) return false;
    if (!input_.ordered || candidate.summed < 0) return true;
    return cuts_between_leaves(input_, axis_, candidate.summed);  // of one label alone, on whatever axes
  }

  /// Integers add up in any order, and an exactly linear op changes no bit of a sum that has no order of its own.
  bool may_stay_partial(size_t i) const {
    const auto* given = input_.given[i];
    if (!given || !have(i).is_partial() || have(i).is_ordered()) return false;
    return input_.sharding.exact || !c10::isFloatingType(given->dtype);
  }

  /// A product in 16 bits would round each summand.
  bool rounds_partial(size_t i) const {
    return input_.sharding.linearity[i] == Linearity::kEach && !input_.sharding.exact && input_.given[i] &&
           is_low_precision(input_.given[i]->dtype);
  }

  double cost_of(const Candidate& candidate) const {
    double cost = 0;
    for (size_t i = 0; i < candidate.operands.size(); ++i)
      if (!stays(i, candidate.operands[i])) cost += move_cost(i, candidate.operands[i]);
    return cost;
  }

  /// Bytes sent, with weights that are no costs but wishes: a gather that nobody asked for is worth eight times its
  /// bytes of anything else, and what sends nothing is taken in order of the memory that it writes.
  double move_cost(size_t i, const Placement& want) const {
    constexpr double kUnaskedGather = 8, kPerByteWritten = 1e-3, kPerByteOfZeros = 1e-6;
    const double whole = input_.given[i]->bytes() + 1, part = whole / ranks_;
    if (have(i).is_replicate()) return whole * (want.is_partial() ? kPerByteOfZeros : kPerByteWritten);
    const bool gathers = have(i).is_shard(), beside_written = input_.written >= 0;
    if (want.is_partial() || (gathers && want.is_shard() && !beside_written)) return kImpossible;
    const Held held{gathers ? part : whole, !want.is_shard() ? whole : gathers ? part / ranks_ : part};
    const double bytes = sent(have(i), want, ranks_, held);
    return gathers ? kUnaskedGather * bytes : bytes;
  }

  const LayoutQuery& input_;
  int axis_;
  double ranks_;  ///< of one as of two: what is cut there stays so, and gradients know samples by it
};

/// Puts the choices of all axes together: orders and units of the axes that cut one label come from the operand that
/// has most of them already.
class Assembler {
 public:
  Assembler(const LayoutQuery& input, const std::vector<const Candidate*>& chosen) : input_(input), chosen_(chosen) {}

  ChosenLayouts run() const {
    ChosenLayouts choice;
    for (size_t i = 0; i < input_.sharding.operands.size(); ++i)
      choice.operands.push_back(layout(input_.sharding.operands[i], [&](size_t a) { return chosen_[a]->operands[i]; }));
    for (size_t r = 0; r < input_.sharding.results.size(); ++r)
      choice.results.push_back(
          between_leaves(r, layout(input_.sharding.results[r], [&](size_t a) { return chosen_[a]->results[r]; })));
    return choice;
  }

 private:
  template <class Get>
  Layout layout(const OpShardingDims& dims, const Get& get) const {
    Placements placements;
    for (size_t a = 0; a < chosen_.size(); ++a) {
      auto placement = get(a);
      if (placement.is_shard()) {
        const auto& dim = dims[static_cast<size_t>(placement.dim)];
        placement.unit = unit(dim.label, static_cast<int>(a)) * dim.factor;
        placement.depth = static_cast<uint8_t>(depth(dim.label, static_cast<int>(a)));
      } else if (placement.is_partial() && input_.ordered && chosen_[a]->summed >= 0) {
        const int axis = static_cast<int>(a), label = chosen_[a]->summed;
        placement = ordered_partial(input_, label, unit(label, axis), depth(label, axis));
      }
      placements.push_back(placement);
    }
    return Layout(input_.mesh, std::move(placements));
  }

  /// What no operand has, such as the rows of an embedding's gradient, is cut where sums over it may be.
  Layout between_leaves(size_t result, const Layout& layout) const {
    if (!input_.ordered) return layout;
    auto placements = layout.placements();
    for (auto& placement : placements) {
      if (!placement.is_shard()) continue;
      const auto dim = static_cast<size_t>(placement.dim);
      if (!has_operand(input_.sharding.results[result][dim].label))
        placement.unit = SumTree::over_elements(input_.result_sizes[result][dim]).leaf;
    }
    return Layout(input_.mesh, std::move(placements));
  }

  bool has_operand(int label) const {
    const auto& operands = input_.sharding.operands;
    return std::any_of(operands.begin(), operands.end(),
                       [&](const OpShardingDims& dims) { return OpSharding::find(dims, label) >= 0; });
  }

  static bool cuts(const std::vector<OpShardingDims>& dims, const std::vector<Placement>& placements, int label) {
    for (size_t i = 0; i < placements.size(); ++i) {
      const auto& p = placements[i];
      if (p.is_shard() && dims[i][static_cast<size_t>(p.dim)].label == label) return true;
    }
    return false;
  }

  bool cuts(int axis, int label) const {
    const auto* candidate = chosen_[static_cast<size_t>(axis)];
    return cuts(input_.sharding.operands, candidate->operands, label) ||
           cuts(input_.sharding.results, candidate->results, label);
  }

  /// Dimension of operand `i` that has the label and is cut by `axis` already, or -1.
  int cut_dim(size_t i, int label, int axis) const {
    const int dim = OpSharding::find(input_.sharding.operands[i], label);
    return dim >= 0 && input_.given[i] && input_.given[i]->layout[axis].is_shard(dim) ? dim : -1;
  }

  int64_t unit(int label, int axis) const {
    for (size_t i = 0; i < input_.given.size(); ++i) {
      const int dim = cut_dim(i, label, axis);
      if (dim < 0) continue;
      const auto found =
          label_unit(*input_.given[i], axis, dim, input_.sharding.operands[i][static_cast<size_t>(dim)].factor);
      if (found) return *found;
    }
    return 1;
  }

  /// The axes that cut the label, first cut first.
  std::vector<int> order(int label) const {
    std::vector<int> best;
    for (size_t i = 0; i < input_.given.size(); ++i) {
      const int dim = OpSharding::find(input_.sharding.operands[i], label);
      if (dim < 0 || !input_.given[i]) continue;
      std::vector<int> mine;
      for (const int axis : input_.given[i]->layout.cutters(dim))
        if (cuts(axis, label)) mine.push_back(axis);
      if (mine.size() > best.size()) best = mine;
    }
    for (int axis = 0; axis < input_.mesh.axis_count(); ++axis)
      if (cuts(axis, label) && std::find(best.begin(), best.end(), axis) == best.end()) best.push_back(axis);
    return best;
  }

  int64_t depth(int label, int axis) const {
    const auto axes = order(label);
    return std::find(axes.begin(), axes.end(), axis) - axes.begin();
  }

  const LayoutQuery& input_;
  const std::vector<const Candidate*>& chosen_;
};

std::vector<Reduction> partial_kinds(const LayoutQuery& input, int axis) {
  std::vector<Reduction> kinds;
  for (const auto* spec : input.given)
    if (spec && spec->layout[axis].is_partial() &&
        std::find(kinds.begin(), kinds.end(), spec->layout[axis].reduction) == kinds.end())
      kinds.push_back(spec->layout[axis].reduction);
  return kinds;
}

/// `most_summing`: how many axes may cut a sum.
std::optional<ChosenLayouts> choose_layouts(const LayoutQuery& input, int most_summing) {
  std::vector<std::vector<Candidate>> all;
  all.reserve(static_cast<size_t>(input.mesh.axis_count()));
  for (int axis = 0; axis < input.mesh.axis_count(); ++axis)
    all.push_back(candidates(input.sharding, partial_kinds(input, axis)));
  std::vector<const Candidate*> chosen;
  int summing = 0;
  for (int axis = 0; axis < input.mesh.axis_count(); ++axis) {
    auto& mine = all[static_cast<size_t>(axis)];
    if (input.ordered && summing >= most_summing)
      std::erase_if(mine, [](const Candidate& candidate) { return candidate.summed >= 0; });
    const auto* candidate = AxisChooser(input, axis).cheapest(mine);
    if (!candidate) return std::nullopt;
    chosen.push_back(candidate);
    summing += candidate->summed >= 0;
  }
  return Assembler(input, chosen).run();
}

}  // namespace

std::optional<ChosenLayouts> choose_layouts(const LayoutQuery& input) {
  auto choice = choose_layouts(input, input.mesh.axis_count());
  // Operands that different axes cut can be cut finer together than leaves are long.
  if (!choice || std::all_of(choice->results.begin(), choice->results.end(), ends_between_leaves)) return choice;
  return choose_layouts(input, 1);
}

}  // namespace lockstep
