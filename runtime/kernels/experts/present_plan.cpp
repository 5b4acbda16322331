#include "runtime/kernels/experts/present_plan.h"

#include <algorithm>

namespace lockstep::kernels {
namespace {

/// Walks over both trees in the order of the sums, where anything is present.
class PresentPlanner {
 public:
  PresentPlanner(const Contraction& contraction, const std::vector<std::vector<int64_t>>& positions,
                 int64_t group_limit)
      : samples_(SumTree::over_samples(contraction.all_samples)),
        elements_(SumTree::over_elements(contraction.is_empty_sum() ? 0 : contraction.all_elements)),
        first_(contraction.first_sample),
        positions_(positions),
        group_limit_(group_limit) {}

  ProductPlan plan(const Contraction& contraction) {
    for (const SumNode& node : nodes_of(contraction)) {
      if (visit(contraction.all_samples == 1 ? elements_ : samples_, node)) plan_.groups.back().ends_node = true;
      ++plan_.node_count;
      depth_ = 0;
    }
    return std::move(plan_);
  }

 private:
  bool over_samples(const SumTree& tree) const { return &tree == &samples_; }
  static SumNode left_of(const SumNode& node) { return {node.height - 1, node.index * 2}; }
  static SumNode right_of(const SumNode& node) { return {node.height - 1, node.index * 2 + 1}; }

  const std::vector<int64_t>* sample(int64_t number) const {
    const auto here = static_cast<size_t>(number - first_);
    return number >= first_ && here < positions_.size() ? &positions_[here] : nullptr;
  }

  int64_t present(const SumTree& tree, const SumNode& node) const {
    const auto [start, end] = elements_of(tree, node);
    int64_t count = 0;
    if (over_samples(tree)) {
      for (int64_t s = start; s < end; ++s)
        if (const auto* mine = sample(s)) count += static_cast<int64_t>(mine->size());
      return count;
    }
    const auto* mine = sample(sample_);
    if (!mine) return 0;
    return std::lower_bound(mine->begin(), mine->end(), end) - std::lower_bound(mine->begin(), mine->end(), start);
  }

  /// Whether anything is.
  bool visit(const SumTree& tree, const SumNode& node) {
    const int64_t count = present(tree, node);
    if (count == 0) return false;
    if (count <= group_limit_ || (!over_samples(tree) && node.height == 0)) return add_group(tree, node, count);
    if (node.height == 0) return enter(node), visit(elements_, {elements_.height, 0});
    const bool left = visit(tree, left_of(node)), right = visit(tree, right_of(node));
    if (left && right) ++plan_.groups.back().joins, --depth_;
    return true;
  }

  void enter(const SumNode& leaf) { sample_ = leaf.index; }

  bool add_group(const SumTree& tree, const SumNode& node, int64_t count) {
    const auto first = static_cast<int64_t>(plan_.leaves.size());
    waiting_ = 0;
    visit_leaves(tree, node);
    plan_.groups.push_back({first, static_cast<int64_t>(plan_.leaves.size()) - first, plan_.positions, count, 0, depth_,
                            plan_.node_count, false});
    plan_.positions += count;
    plan_.longest_group = std::max(plan_.longest_group, count);
    plan_.deepest = std::max(plan_.deepest, ++depth_);
    return true;
  }

  bool visit_leaves(const SumTree& tree, const SumNode& node) {
    const int64_t count = present(tree, node);
    if (count == 0) return false;
    if (node.height == 0 && over_samples(tree)) return enter(node), visit_leaves(elements_, {elements_.height, 0});
    if (node.height == 0) {
      plan_.leaves.push_back({static_cast<int32_t>(count), 0});
      plan_.deepest_group = std::max(plan_.deepest_group, ++waiting_);
      return true;
    }
    const bool left = visit_leaves(tree, left_of(node)), right = visit_leaves(tree, right_of(node));
    if (left && right) ++plan_.leaves.back().joins, --waiting_;
    return true;
  }

  SumTree samples_, elements_;
  int64_t first_;
  const std::vector<std::vector<int64_t>>& positions_;
  int64_t group_limit_;
  ProductPlan plan_;
  int64_t sample_ = 0;
  int depth_ = 0, waiting_ = 0;
};

}  // namespace

ProductPlan plan_present(const Contraction& contraction, const std::vector<std::vector<int64_t>>& positions,
                         int64_t group_limit) {
  return PresentPlanner(contraction, positions, group_limit).plan(contraction);
}

}  // namespace lockstep::kernels
