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

/// Walks over both trees in the order of the sums, where anything is present.
class Planner {
 public:
  /// `present`: null if everything is.
  Planner(const Contraction& contraction, int64_t group_limit, const PresentElements* present)
      : samples_(SumTree::over_samples(contraction.all_samples)),
        elements_(SumTree::over_elements(contraction.is_empty_sum() ? 0 : contraction.all_elements)),
        group_limit_(group_limit),
        present_(present),
        sample_(contraction.first_sample),
        first_sample_(contraction.first_sample) {}

  ProductPlan plan(const Contraction& contraction) {
    const auto& tree = contraction.all_samples == 1 ? elements_ : samples_;
    for (const SumNode& node : nodes_of(contraction)) {
      if (!present_ || is_present(tree, node)) {
        visit(tree, node);
        plan_.groups.back().ends_node = true;
      }
      ++plan_.node_count;
      depth_ = 0;
    }
    return std::move(plan_);
  }

 private:
  bool over_samples(const SumTree& tree) const { return &tree == &samples_; }

  /// How many summands of a node there are.
  int64_t length_of(const SumTree& tree, const SumNode& node) const {
    const auto [start, end] = elements_of(tree, node);
    if (!present_) return (end - start) * (over_samples(tree) ? elements_.size : 1);
    if (!over_samples(tree)) return count_before(end) - count_before(start);
    int64_t length = 0;
    for (int64_t s = start; s < end; ++s) length += static_cast<int64_t>(elements_here(s).size());
    return length;
  }
  const std::vector<int64_t>& elements_here(int64_t sample) const {
    return present_->at(static_cast<size_t>(sample - first_sample_));
  }
  int64_t count_before(int64_t element) const {
    const auto& here = elements_here(sample_);
    return std::lower_bound(here.begin(), here.end(), element) - here.begin();
  }
  bool is_present(const SumTree& tree, const SumNode& node) const {
    return present_ ? length_of(tree, node) > 0 : is_here(tree, node);
  }

  /// The children that are present, one after the other; `join` once both are there.
  template <class Visit, class Join>
  void visit_children(const SumTree& tree, const SumNode& node, const Visit& visit, const Join& join) {
    const bool left = is_present(tree, left_of(node)), right = is_present(tree, right_of(node));
    if (left) visit(left_of(node));
    if (right) visit(right_of(node));
    if (left && right) join();
  }

  void visit(const SumTree& tree, const SumNode& node) {
    if (length_of(tree, node) <= group_limit_ || (!over_samples(tree) && node.height == 0))
      return add_group(tree, node);
    if (node.height == 0) return enter(node), visit(elements_, root_of(elements_));
    visit_children(
        tree, node, [&](const SumNode& child) { visit(tree, child); }, [&] { ++plan_.groups.back().joins, --depth_; });
  }

  void enter(const SumNode& sample) { sample_ = sample.index; }

  void add_group(const SumTree& tree, const SumNode& node) {
    const auto first = static_cast<int64_t>(plan_.leaves.size());
    waiting_ = 0;
    const int64_t length = length_of(tree, node);
    visit_leaves(tree, node);
    plan_.groups.push_back({first, static_cast<int64_t>(plan_.leaves.size()) - first, plan_.positions, length, 0,
                            depth_, plan_.node_count, false});
    plan_.positions += length;
    plan_.longest_group = std::max(plan_.longest_group, length);
    plan_.deepest = std::max(plan_.deepest, ++depth_);
  }

  void visit_leaves(const SumTree& tree, const SumNode& node) {
    if (node.height == 0 && over_samples(tree)) return enter(node), visit_leaves(elements_, root_of(elements_));
    if (node.height == 0) {
      plan_.leaves.push_back({static_cast<int32_t>(length_of(tree, node)), 0});
      plan_.deepest_group = std::max(plan_.deepest_group, ++waiting_);
      return;
    }
    visit_children(
        tree, node, [&](const SumNode& child) { visit_leaves(tree, child); },
        [&] { ++plan_.leaves.back().joins, --waiting_; });
  }

  SumTree samples_, elements_;
  int64_t group_limit_;
  const PresentElements* present_;
  int64_t sample_, first_sample_;
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
  LOCKSTEP_CHECK(c.all_samples == 1 && c.samples > 0 ? c.samples == 1 && c.first_sample == 0 : all_elements,
                 "a range of samples or one of elements: {} + {} of {}, {} + {} of {}", c.first_sample, c.samples,
                 c.all_samples, c.first_element, c.elements, c.all_elements);
}

}  // namespace

std::vector<SumNode> nodes_of(const Contraction& contraction) {
  check(contraction);
  if (contraction.samples == 0 && contraction.all_samples > 0) return {};
  if (contraction.open_levels > 0) return open_nodes(contraction);
  const bool elements = contraction.all_samples == 1;
  const SumTree tree =
      elements ? SumTree::over_elements(contraction.all_elements) : SumTree::over_samples(contraction.all_samples);
  if (tree.size == 0) return {root_of(tree)};
  return elements ? cover(tree, contraction.first_element, contraction.elements)
                  : cover(tree, contraction.first_sample, contraction.samples);
}

ProductPlan plan_product(const Contraction& contraction, int64_t group_limit) {
  return Planner(contraction, group_limit, nullptr).plan(contraction);
}

ProductPlan plan_product(const Contraction& contraction, int64_t group_limit, const PresentElements& present) {
  return Planner(contraction, group_limit, &present).plan(contraction);
}

}  // namespace lockstep::kernels
