#pragma once
#include <cstdint>
#include <vector>

namespace lockstep {

/// The one tree along which canonical numerics adds (docs/numerics.md). It is a function of the number of summands
/// alone, never of how a mesh cuts them, and it is the same for every complete subtree wherever that lies.
///
/// A sum of `size` elements has 2^height leaves of `leaf` elements each; the last ones are short or absent. Within a
/// leaf the elements are one chain from +0 in ascending order; +0 is added to what it gives, so that it is never -0.
/// Siblings are joined as left + right. A node whose right half is absent is its left half.
struct SumTree {
  int64_t size;  ///< of the whole label, on every mesh
  int64_t leaf;  ///< elements per leaf
  int height;    ///< the root covers 2^height leaves, the least power of two that is enough

  SumTree(int64_t all_elements, int64_t leaf_elements);

  /// For a label within a sample: 2^height leaves of at least 32 elements, kMostLeaves at most, so that up to as many
  /// shards in powers of two own whole subtrees. One leaf below 64 elements.
  static constexpr int64_t kMostLeaves = 64;
  static SumTree over_elements(int64_t size);
  /// For samples, or other things that are sums themselves: leaves of one.
  static SumTree over_samples(int64_t size);

  int64_t leaf_count() const { return (size + leaf - 1) / leaf; }
  /// A shard may end there: between two leaves.
  bool is_boundary(int64_t element) const { return element == size || element % leaf == 0; }
};

/// A complete subtree: leaves [index << height, (index + 1) << height).
struct SumNode {
  int height;
  int64_t index;
  bool operator==(const SumNode&) const = default;
  SumNode parent() const { return {height + 1, index >> 1}; }
  bool is_right() const { return (index & 1) != 0; }
};

/// The largest complete subtrees that make up the elements [start, start + length), left to right; absent leaves behind
/// the last element count as covered. None for an empty range. REQUIRES: both ends are boundaries.
std::vector<SumNode> cover(const SumTree& tree, int64_t start, int64_t length);

/// Elements [start, end) of a node that are present.
struct SumRange {
  int64_t start, end;
};
SumRange elements_of(const SumTree& tree, const SumNode& node);

/// Adds nodes up in the order of the tree. Nodes come in any order; two siblings are joined as soon as both are there,
/// by join(left, right), which returns left + right. A node can be empty (absent) but its place is known.
template <class Value>
class SumJoiner {
 public:
  explicit SumJoiner(const SumTree& tree) : tree_(tree) {}

  struct AsItIs {
    Value operator()(const SumNode&, Value value) const { return value; }
  };
  /// `at_node(node, value)` is what a node's value becomes: what comes, what is joined, what stands without a sibling.
  template <class Join, class AtNode = AsItIs>
  void add(SumNode node, Value value, const Join& join, const AtNode& at_node = {}) {
    value = at_node(node, std::move(value));
    while (true) {
      const auto other = find_sibling(node);
      if (other != parts_.end()) {
        value = node.is_right() ? join(std::move(other->value), std::move(value))
                                : join(std::move(value), std::move(other->value));
        parts_.erase(other);
      } else if (node.height == tree_.height || !sibling_is_absent(node)) {
        break;
      }
      node = node.parent();
      value = at_node(node, std::move(value));
    }
    auto place = parts_.begin();
    while (place != parts_.end() && start_of(place->node) < start_of(node)) ++place;
    parts_.insert(place, {node, std::move(value)});
  }

  struct Part {
    SumNode node;
    Value value;
  };
  /// What could not be joined yet, left to right; one part, the root, when all were added.
  std::vector<Part>& parts() { return parts_; }
  bool is_complete() const { return parts_.size() == 1 && parts_[0].node == SumNode{tree_.height, 0}; }

 private:
  static int64_t start_of(const SumNode& node) { return node.index << node.height; }
  bool sibling_is_absent(const SumNode& node) const {
    return !node.is_right() && ((node.index + 1) << node.height) >= tree_.leaf_count();
  }
  auto find_sibling(const SumNode& node) {
    auto part = parts_.begin();
    while (part != parts_.end() && !(part->node == SumNode{node.height, node.index ^ 1})) ++part;
    return part;
  }

  SumTree tree_;
  std::vector<Part> parts_;
};

}  // namespace lockstep
