#include "runtime/kernels/sums/sum_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <functional>
#include <random>
#include <string>

namespace lockstep {
namespace {

SumTree any_tree() {
  return *rc::gen::arbitrary<bool>() ? SumTree::over_elements(*rc::gen::inRange<int64_t>(0, 20000))
                                     : SumTree::over_samples(*rc::gen::inRange<int64_t>(0, 300));
}

int64_t boundary(const SumTree& tree, int64_t leaf) { return std::min(leaf * tree.leaf, tree.size); }

RC_GTEST_PROP(SumTree, LeavesAreUniformAndNeverSmall, ()) {
  const auto size = *rc::gen::inRange<int64_t>(1, 1000000);
  const auto tree = SumTree::over_elements(size);
  RC_ASSERT(tree.leaf_count() <= 64 && (size < 64 || tree.leaf >= 32));
  RC_ASSERT(tree.leaf_count() <= int64_t{1} << tree.height);
  RC_ASSERT(size < 64 || tree.leaf_count() * 2 > int64_t{1} << tree.height);
}

RC_GTEST_PROP(SumTree, CoversAreDisjointCompleteAndMaximal, ()) {
  const auto tree = any_tree();
  const auto from = *rc::gen::inRange<int64_t>(0, tree.leaf_count() + 1);
  const auto to = *rc::gen::inRange<int64_t>(from, tree.leaf_count() + 1);
  const int64_t start = boundary(tree, from), end = boundary(tree, to);
  int64_t at = start;
  for (const auto& node : cover(tree, start, end - start)) {
    const auto range = elements_of(tree, node);
    RC_ASSERT(range.start == at && range.end > at && node.height <= tree.height);
    at = range.end;
    if (node.height == tree.height) continue;
    const auto parent = elements_of(tree, node.parent());
    RC_ASSERT(parent.start < start || parent.end > end);
  }
  RC_ASSERT(at == end);
}

/// Joins that write down what was joined: brackets around left and right.
RC_GTEST_PROP(SumTree, ShardsInAnyOrderJoinToTheSameTree, (uint32_t seed)) {
  const auto tree = any_tree();
  RC_PRE(tree.size > 0);
  const auto join = [](const std::string& left, const std::string& right) { return "(" + left + right + ")"; };
  const std::function<std::string(SumNode)> brackets = [&](SumNode node) -> std::string {
    if (node.height == 0) return std::to_string(node.index) + ",";
    const SumNode left{node.height - 1, node.index * 2}, right{node.height - 1, node.index * 2 + 1};
    return elements_of(tree, right).start < tree.size ? join(brackets(left), brackets(right)) : brackets(left);
  };
  const auto shards = *rc::gen::inRange<int64_t>(1, 34);
  std::vector<SumNode> nodes;
  for (int64_t shard = 0; shard < shards; ++shard) {
    const int64_t start = boundary(tree, tree.leaf_count() * shard / shards);
    const int64_t end = boundary(tree, tree.leaf_count() * (shard + 1) / shards);
    for (const auto& node : cover(tree, start, end - start)) nodes.push_back(node);
  }
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937(seed));
  SumJoiner<std::string> joiner(tree);
  for (const auto& node : nodes) joiner.add(node, brackets(node), join);
  RC_ASSERT(joiner.is_complete());
  RC_ASSERT(joiner.parts()[0].value == brackets({tree.height, 0}));
}

}  // namespace
}  // namespace lockstep
