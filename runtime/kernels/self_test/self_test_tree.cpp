// The tree: whatever a sum is cut into, its nodes join to what the recursion over all of it gives.
#include "runtime/kernels/self_test/self_test_comparer.h"
#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep::kernels {
namespace {

/// A join of which no two orders give the same.
uint64_t join(uint64_t left, uint64_t right) { return (left * 0x9e3779b97f4a7c15u ^ right) * 0xff51afd7ed558ccdu; }

uint64_t value_of(const SumTree& tree, SumNode node) {
  if (node.height == 0) return static_cast<uint64_t>(node.index) + 1;
  const SumNode left{node.height - 1, 2 * node.index}, right{node.height - 1, 2 * node.index + 1};
  const bool is_absent = right.index << right.height >= tree.leaf_count();
  return is_absent ? value_of(tree, left) : join(value_of(tree, left), value_of(tree, right));
}

/// The nodes of `ranks` neighbours, the last ones first.
uint64_t joined(const SumTree& tree, int64_t ranks) {
  SumJoiner<uint64_t> joiner(tree);
  const auto start = [&](int64_t rank) { return std::min(tree.leaf_count() * rank / ranks * tree.leaf, tree.size); };
  for (int64_t rank = ranks - 1; rank >= 0; --rank)
    for (const auto& node : cover(tree, start(rank), start(rank + 1) - start(rank)))
      joiner.add(node, value_of(tree, node), join);
  return joiner.is_complete() ? joiner.parts()[0].value : 0;
}

}  // namespace

void test_tree(SelfTestComparer& comparer) {
  for (const int64_t size : {1, 63, 64, 257, 2047, 4096, 50257})
    for (const auto& tree : {SumTree::over_elements(size), SumTree::over_samples(size % 100 + 1)})
      for (const int64_t ranks : {1, 2, 3, 6, 8}) {
        ShiftedBuffer<uint64_t> result(1, 0);
        *result.data() = joined(tree, ranks);
        comparer.expect({"tree", InstructionSet::kBaseline, 0}, result, {value_of(tree, {tree.height, 0})});
      }
}

}  // namespace lockstep::kernels
