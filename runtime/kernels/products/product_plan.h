#pragma once
#include <cstdint>
#include <vector>

#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep::kernels {

/// What a product sums over, and which part of it is here. Samples are the outer tree, the elements of a sample the
/// inner one; a leaf never spans two samples.
///
/// Here are the samples [first_sample, first_sample + samples) of all_samples, whole; or, with all_samples == 1, the
/// elements [first_element, first_element + elements) of all_elements, which end at boundaries of leaves.
struct Contraction {
  int64_t all_samples = 1, first_sample = 0, samples = 1;
  int64_t all_elements = 0, first_element = 0, elements = 0;
  int64_t open_levels = 0;  ///< with all_samples == 1: nodes of so many levels below the root are not joined

  static Contraction over(int64_t size) { return {1, 0, 1, size, 0, size}; }
  static Contraction over(int64_t size, int64_t first, int64_t length) { return {1, 0, 1, size, first, length}; }
  static Contraction over_samples(int64_t all, int64_t first, int64_t count, int64_t elements) {
    return {all, first, count, elements, 0, elements};
  }
  /// Sums over nothing are +0: one node.
  bool is_empty_sum() const { return all_samples == 0 || all_elements == 0; }
};

/// The nodes that the part here adds up to, left to right: of the tree over samples, or, with all_samples == 1, of the
/// tree over elements. The whole contraction has one, even if it is empty, or one for each part of its open levels;
/// a part without samples has none.
std::vector<SumNode> nodes_of(const Contraction& contraction);

/// A leaf, and how many siblings to its left are joined once it is there.
struct LeafStep {
  int32_t length, joins;
};

/// A complete subtree whose summands fit into caches, or a node that is one by itself. Positions count the summands
/// that are here, samples one after the other.
struct LeafGroup {
  int64_t first_leaf, leaf_count;
  int64_t position, length;
  int joins;       ///< groups to its left that are joined once it is there
  int depth;       ///< groups that wait for their right sibling before it
  int64_t node;    ///< that it belongs to
  bool ends_node;  ///< is the last group of that node
};

/// A contraction in the order of its computation.
struct ProductPlan {
  std::vector<LeafStep> leaves;
  std::vector<LeafGroup> groups;
  int64_t node_count = 0;
  int64_t positions = 0;               ///< summands here
  int64_t longest_group = 0;           ///< in positions
  int deepest = 0, deepest_group = 0;  ///< most groups, most leaves of a group that wait at any time
};
ProductPlan plan_product(const Contraction& contraction, int64_t group_limit);
inline constexpr int64_t kGroupLimit = 512;  ///< of product(): positions whose panels share the caches

/// The same of summands of which some are absent: what is absent adds +0, which changes no bit, and is left out, so
/// that the product reads those that are present alone, one after the other. Of each sample that is here (or of the one
/// that the contraction is of) the elements that are present, ascending, counted from the sample's first. Nodes without
/// any have no group: what they are is 0.
using PresentElements = std::vector<std::vector<int64_t>>;
ProductPlan plan_product(const Contraction& contraction, int64_t group_limit, const PresentElements& present);

}  // namespace lockstep::kernels
