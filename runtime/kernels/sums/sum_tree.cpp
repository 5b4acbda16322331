#include "runtime/kernels/sums/sum_tree.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr int64_t kSmallestLeaf = 32;

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int height_over(int64_t count) {
  return count <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1)));
}

}  // namespace

SumTree::SumTree(int64_t all_elements, int64_t leaf_elements)
    : size(all_elements), leaf(leaf_elements), height(height_over(ceil_divide(all_elements, leaf_elements))) {}

SumTree SumTree::over_elements(int64_t size) {
  int height = 0;
  while (int64_t{1} << height < kMostLeaves && size >> (height + 1) >= kSmallestLeaf) ++height;
  return {size, std::max<int64_t>(ceil_divide(size, int64_t{1} << height), 1)};
}

SumTree SumTree::over_samples(int64_t size) { return {size, 1}; }

std::vector<SumNode> cover(const SumTree& tree, int64_t start, int64_t length) {
  LOCKSTEP_CHECK(start >= 0 && length >= 0 && start + length <= tree.size, "{} + {} of {}", start, length, tree.size);
  LOCKSTEP_CHECK(tree.is_boundary(start) && tree.is_boundary(start + length), "{} + {}, leaves of {}", start, length,
                 tree.leaf);
  std::vector<SumNode> nodes;
  if (length == 0) return nodes;
  int64_t at = start / tree.leaf;
  const int64_t end = start + length == tree.size ? int64_t{1} << tree.height : (start + length) / tree.leaf;
  while (at < end) {
    int height = at == 0 ? tree.height : std::countr_zero(static_cast<uint64_t>(at));
    while (at + (int64_t{1} << height) > end) --height;
    nodes.push_back({height, at >> height});
    at += int64_t{1} << height;
  }
  // Trees whose last leaves are absent have nodes of nothing at the end.
  while (nodes.size() > 1 && elements_of(tree, nodes.back()).start >= tree.size) nodes.pop_back();
  return nodes;
}

SumRange elements_of(const SumTree& tree, const SumNode& node) {
  return {std::min((node.index << node.height) * tree.leaf, tree.size),
          std::min(((node.index + 1) << node.height) * tree.leaf, tree.size)};
}

}  // namespace lockstep
