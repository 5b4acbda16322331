#include "runtime/kernels/products/product_plan.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace lockstep::kernels {
namespace {

bool is_here(const SumTree& tree, const SumNode& node) { return elements_of(tree, node).start < tree.size; }

SumNode left_of(const SumNode& node) { return {node.height - 1, node.index * 2}; }
SumNode right_of(const SumNode& node) { return {node.height - 1, node.index * 2 + 1}; }
SumNode root_of(const SumTree& tree) { return {tree.height, 0}; }

/// Walks over both trees in the order of the sums.
class Planner {
 public:
  Planner(const Contraction& contraction, int64_t group_limit)
      : samples_(SumTree::over_samples(contraction.all_samples)),
        elements_(SumTree::over_elements(contraction.is_empty_sum() ? 0 : contraction.all_elements)),
        group_limit_(group_limit) {}

  ProductPlan plan(const Contraction& contraction) {
    for (const SumNode& node : nodes_of(contraction)) {
      if (contraction.all_samples == 1) {
        visit(elements_, node);
      } else {
        visit(samples_, node);
      }
      plan_.groups.back().ends_node = true;
      ++plan_.node_count;
      depth_ = 0;
    }
    return std::move(plan_);
  }

 private:
  bool over_samples(const SumTree& tree) const { return &tree == &samples_; }

  int64_t length_of(const SumTree& tree, const SumNode& node) const {
    const auto [start, end] = elements_of(tree, node);
    return (end - start) * (over_samples(tree) ? elements_.size : 1);
  }

  void visit(const SumTree& tree, const SumNode& node) {
    if (length_of(tree, node) <= group_limit_ || (!over_samples(tree) && node.height == 0))
      return add_group(tree, node);
    if (node.height == 0) return visit(elements_, root_of(elements_));
    visit(tree, left_of(node));
    if (!is_here(tree, right_of(node))) return;
    visit(tree, right_of(node));
    ++plan_.groups.back().joins;
    --depth_;
  }

  void add_group(const SumTree& tree, const SumNode& node) {
    const auto first = static_cast<int64_t>(plan_.leaves.size());
    waiting_ = 0;
    visit_leaves(tree, node);
    const int64_t length = length_of(tree, node);
    plan_.groups.push_back({first, static_cast<int64_t>(plan_.leaves.size()) - first, plan_.positions, length, 0,
                            depth_, plan_.node_count, false});
    plan_.positions += length;
    plan_.longest_group = std::max(plan_.longest_group, length);
    plan_.deepest = std::max(plan_.deepest, ++depth_);
  }

  void visit_leaves(const SumTree& tree, const SumNode& node) {
    if (node.height == 0 && over_samples(tree)) return visit_leaves(elements_, root_of(elements_));
    if (node.height == 0) {
      plan_.leaves.push_back({static_cast<int32_t>(length_of(tree, node)), 0});
      plan_.deepest_group = std::max(plan_.deepest_group, ++waiting_);
      return;
    }
    visit_leaves(tree, left_of(node));
    if (!is_here(tree, right_of(node))) return;
    visit_leaves(tree, right_of(node));
    ++plan_.leaves.back().joins;
    --waiting_;
  }

  SumTree samples_, elements_;
  int64_t group_limit_;
  ProductPlan plan_;
  int depth_ = 0, waiting_ = 0;
};

/// The nodes below `node` that are as low as `height`, or `node` itself if it is no higher.
void add_nodes_at(const SumTree& tree, const SumNode& node, int height, std::vector<SumNode>& nodes) {
  if (node.height <= height) return nodes.push_back(node);
  add_nodes_at(tree, left_of(node), height, nodes);
  if (is_here(tree, right_of(node))) add_nodes_at(tree, right_of(node), height, nodes);
}

std::vector<SumNode> open_nodes(Contraction contraction) {
  LOCKSTEP_CHECK_EQ(contraction.all_samples, 1);
  const auto tree = SumTree::over_elements(contraction.all_elements);
  const int height = tree.height - static_cast<int>(std::exchange(contraction.open_levels, 0));
  std::vector<SumNode> nodes;
  for (const auto& node : nodes_of(contraction)) add_nodes_at(tree, node, std::max(height, 0), nodes);
  return nodes;
}

void check(const Contraction& c) {
  const bool all_elements = c.first_element == 0 && c.elements == c.all_elements;
  LOCKSTEP_CHECK(c.all_samples == 1 ? c.samples == 1 && c.first_sample == 0 : all_elements,
                 "a range of samples or one of elements: {} + {} of {}, {} + {} of {}", c.first_sample, c.samples,
                 c.all_samples, c.first_element, c.elements, c.all_elements);
}

}  // namespace

std::vector<SumNode> nodes_of(const Contraction& contraction) {
  check(contraction);
  if (contraction.open_levels > 0) return open_nodes(contraction);
  const bool elements = contraction.all_samples == 1;
  const SumTree tree =
      elements ? SumTree::over_elements(contraction.all_elements) : SumTree::over_samples(contraction.all_samples);
  if (tree.size == 0) return {root_of(tree)};
  return elements ? cover(tree, contraction.first_element, contraction.elements)
                  : cover(tree, contraction.first_sample, contraction.samples);
}

ProductPlan plan_product(const Contraction& contraction, int64_t group_limit) {
  return Planner(contraction, group_limit).plan(contraction);
}

}  // namespace lockstep::kernels
