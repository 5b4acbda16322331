// Which sums canonical numerics lets a mesh cut.
#include "runtime/planning/ordered_sums.h"

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/tensor/domain.h"

namespace lockstep {
namespace {

bool vanishes(const OpSharding& sharding, int label) { return OpSharding::find(sharding.results.back(), label) < 0; }

/// Of nested sums only the outermost can be cut: the ranks' nodes are then nodes of one tree.
bool is_outermost(const OpSharding& sharding, int label) {
  for (const auto& dim : sharding.operands[0])
    if (dim.label == label)
      return true;
    else if (dim.label == OpShardingDim::kWhole ? false : vanishes(sharding, dim.label))
      return false;
  return true;
}

bool fits(const SumTree& tree, const Range& cut) { return tree.is_boundary(cut.start) && tree.is_boundary(cut.end()); }

}  // namespace

SumTree tree_over_batch(int64_t size, size_t dims, int64_t batch_rows) {
  if (batch_rows > 0 && size % batch_rows == 0) return {size, std::max<int64_t>(size / batch_rows, 1)};
  return dims > 2 ? SumTree::over_samples(size) : SumTree::over_elements(size);
}

SumTree tree_of_label(const OpSharding& sharding, int label, int64_t size) {
  if (sharding.batch && OpSharding::find(sharding.operands[0], label) == 0) return *sharding.batch;
  return SumTree::over_elements(size);
}

int64_t rounded_levels(const World& world, c10::ScalarType dtype) {
  return accumulation(Domain::kDeclared, dtype) == dtype ? 0 : world.rounded_levels();
}

Placement ordered_partial(const LayoutQuery& input, int label, int64_t unit, int64_t depth) {
  const auto tree = tree_of_label(input.sharding, label, label_size(input, label));
  auto placement = Placement::ordered_sum(tree.size, tree.leaf, unit, static_cast<uint8_t>(depth));
  if (input.sharding.rounds) placement.rounded_levels = rounded_levels(input.mesh.world(), input.given[0]->dtype);
  return placement;
}

std::optional<Layout> formal_sum(const TensorSpec& left, const TensorSpec& right) {
  const auto *mine = left.layout.ordered_sum(), *other = right.layout.ordered_sum();
  if (!mine || !other || other->terms != 1 || mine->terms == Placement::kMostTerms) return std::nullopt;
  if (left.sizes != right.sizes || left.dtype != right.dtype ||
      accumulation(Domain::kDeclared, left.dtype) != left.dtype)
    return std::nullopt;
  const auto with_terms = [](const Layout& layout, int64_t terms) {
    auto placements = layout.placements();
    for (auto& placement : placements)
      if (placement.is_ordered()) placement.terms = terms;
    return Layout(layout.mesh(), std::move(placements));
  };
  if (with_terms(left.layout, 1) != right.layout) return std::nullopt;
  return with_terms(left.layout, mine->terms + 1);
}

int64_t label_size(const LayoutQuery& input, int label) {
  for (size_t i = 0; i < input.given.size(); ++i) {
    const int dim = OpSharding::find(input.sharding.operands[i], label);
    if (dim >= 0 && input.given[i]) return input.given[i]->sizes[static_cast<size_t>(dim)];
  }
  LOCKSTEP_CHECK(false, "no operand has label {}", label);
}

bool cuts_between_leaves(const LayoutQuery& input, int axis, int label) {
  if (!is_outermost(input.sharding, label)) return false;
  const auto tree = tree_of_label(input.sharding, label, label_size(input, label));
  for (size_t i = 0; i < input.given.size(); ++i) {
    const int dim = OpSharding::find(input.sharding.operands[i], label);
    if (dim < 0 || !input.given[i] || !input.given[i]->layout[axis].is_shard(dim)) continue;
    const auto& layout = input.given[i]->layout;
    for (const int rank : layout.mesh().ranks())
      if (!fits(tree, layout.cut(rank, dim, tree.size))) return false;
  }
  return true;
}

bool ends_between_leaves(const Layout& layout) {
  if (!layout.ordered_sum()) return true;
  const auto tree = sum_tree(*layout.ordered_sum());
  const auto& ranks = layout.mesh().ranks();
  return std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return fits(tree, layout.summands(rank)); });
}

std::string why_not_cut(const LayoutQuery& input, size_t operand, int axis) {
  const auto& layout = input.given[operand]->layout;
  const int dim = layout[axis].dim, label = input.sharding.operands[operand][static_cast<size_t>(dim)].label;
  const auto cut = fmt::format("[{}=S({})]", layout.mesh().axes()[static_cast<size_t>(axis)].name, dim);
  if (label == OpShardingDim::kWhole || !vanishes(input.sharding, label))
    return cut + " is a dimension that it needs whole";
  if (!input.sharding.can_reduce) return cut + " cuts a sum that cannot be finished later";
  if (!input.ordered) return cut + " cuts a sum, and another operand does not";
  if (!is_outermost(input.sharding, label)) return cut + " cuts a sum inside another";
  const auto tree = tree_of_label(input.sharding, label, label_size(input, label));
  for (const int rank : layout.mesh().ranks()) {
    const auto held = layout.cut(rank, dim, tree.size);
    const int64_t end = held.end();
    if (!tree.is_boundary(end))
      return fmt::format("{} cuts {} at {}, inside a leaf of {}", cut, tree.size, end, tree.leaf);
  }
  return cut + " cuts a second sum beside another axis' one";
}

}  // namespace lockstep
