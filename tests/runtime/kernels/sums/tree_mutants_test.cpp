// The tree broken on purpose: the property that holds for SumTree, cover() and SumJoiner fails for each fault.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/cases/tree_parts.h"
#include "tests/support/mutants.h"

namespace lockstep::testing {
namespace {

SumTree of_height(int64_t size, int height, bool round_up = true) {
  const int64_t leaves = int64_t{1} << height;
  return {size, std::max<int64_t>((size + (round_up ? leaves - 1 : 0)) / leaves, 1)};
}
int height_of(int64_t size, int64_t smallest_leaf, int greatest_height) {
  int height = 0;
  while (height < greatest_height && size >> (height + 1) >= smallest_leaf) ++height;
  return height;
}

SumTree leaves_of_16(int64_t size) { return of_height(size, height_of(size, 16, 6)); }
SumTree leaves_of_33(int64_t size) { return of_height(size, height_of(size, 33, 6)); }
SumTree half_the_leaves(int64_t size) { return of_height(size, height_of(size, 32, 5)); }
SumTree twice_the_leaves(int64_t size) { return of_height(size, height_of(size, 32, 7)); }
SumTree leaves_rounded_down(int64_t size) { return of_height(size, height_of(size, 32, 6), false); }
SumTree one_chain(int64_t size) { return {size, std::max<int64_t>(size, 1)}; }
SumTree longer_leaves(int64_t size) { return {size, SumTree::over_elements(size).leaf + 1}; }
SumTree pairs_of_samples(int64_t size) { return {size, 2}; }

using Nodes = std::vector<SumNode>;

Nodes one_to_the_right(const SumTree& tree, int64_t start, int64_t length) {
  auto nodes = cover(tree, start, length);
  for (auto& node : nodes) ++node.index;
  return nodes;
}
Nodes last_dropped(const SumTree& tree, int64_t start, int64_t length) {
  auto nodes = cover(tree, start, length);
  if (nodes.size() > 1) nodes.pop_back();
  return nodes;
}
Nodes first_twice(const SumTree& tree, int64_t start, int64_t length) {
  auto nodes = cover(tree, start, length);
  if (nodes.size() > 1) nodes.push_back(nodes.front());
  return nodes;
}
Nodes single_leaves(const SumTree& tree, int64_t start, int64_t length) {
  Nodes nodes;
  for (int64_t leaf = start / tree.leaf; leaf * tree.leaf < start + length; ++leaf) nodes.push_back({0, leaf});
  return nodes;
}
Nodes tree_of_the_shard(const SumTree& tree, int64_t, int64_t length) {
  return cover(SumTree(length, tree.leaf), 0, length);
}
Nodes unaligned(const SumTree& tree, int64_t start, int64_t length) {
  auto nodes = cover(tree, start, length);
  for (auto& node : nodes)
    if (node.height > 0) return {{node.height - 1, 2 * node.index}};
  return nodes;
}

SumRange one_late(const SumTree& tree, const SumNode& node) {
  const auto [start, end] = elements_of(tree, node);
  return {start > 0 && start < tree.size ? start + 1 : start, end < tree.size ? end + 1 : end};
}
SumRange past_the_end(const SumTree& tree, const SumNode& node) {
  return {elements_of(tree, node).start, ((node.index + 1) << node.height) * tree.leaf};
}
SumRange without_the_last(const SumTree& tree, const SumNode& node) {
  const auto [start, end] = elements_of(tree, node);
  return {start, end == tree.size && end > start + 1 ? end - 1 : end};
}

using Texts = std::vector<std::string>;
using TextNodes = std::vector<TextNode>;

Texts right_before_left(const SumTree& tree, const TextNodes& nodes) {
  return joined_texts(tree, nodes, [](std::string left, std::string right) { return join_text(right, left); });
}
Texts left_alone(const SumTree& tree, const TextNodes& nodes) {
  return joined_texts(tree, nodes, [](std::string left, std::string) { return left; });
}
Texts chain(const TextNodes& nodes) {
  std::string text = nodes[0].second;
  for (size_t i = 1; i < nodes.size(); ++i) text = join_text(text, nodes[i].second);
  return {text};
}
Texts as_they_come(const SumTree&, const TextNodes& nodes) { return chain(nodes); }
TextNodes by_place(TextNodes nodes) {
  const auto start = [](const TextNode& node) { return node.first.index << node.first.height; };
  std::sort(nodes.begin(), nodes.end(), [&](auto& a, auto& b) { return start(a) < start(b); });
  return nodes;
}
Texts from_left_to_right(const SumTree&, const TextNodes& nodes) { return chain(by_place(nodes)); }
Texts tree_over_nodes(const SumTree&, const TextNodes& nodes) {
  TextNodes places;
  for (const auto& [node, text] : by_place(nodes))
    places.emplace_back(SumNode{0, static_cast<int64_t>(places.size())}, text);
  return joined_in_production({static_cast<int64_t>(places.size()), 1}, places);
}
TextNodes placed(TextNodes nodes, int64_t (*place)(int64_t leaf)) {
  for (auto& [node, text] : nodes)
    if (node.height == 0) node.index = place(node.index);
  return nodes;
}
Texts siblings_exchanged(const SumTree& tree, const TextNodes& nodes) {
  if (tree.leaf_count() < 2) return joined_in_production(tree, nodes);
  return joined_in_production(tree, placed(nodes, [](int64_t leaf) { return leaf < 2 ? 1 - leaf : leaf; }));
}
Texts leaves_exchanged(const SumTree& tree, const TextNodes& nodes) {
  if (tree.leaf_count() < 3) return joined_in_production(tree, nodes);
  return joined_in_production(tree,
                              placed(nodes, [](int64_t leaf) { return leaf == 1 || leaf == 2 ? 3 - leaf : leaf; }));
}
/// Siblings are (1, 2), (3, 4), ...
Texts other_pairs(const SumTree& tree, const TextNodes& nodes) {
  return joined_in_production({tree.size + tree.leaf, tree.leaf}, placed(nodes, [](int64_t leaf) { return leaf + 1; }));
}
/// Leaves that are absent are added as zeros.
Texts with_zeros(const SumTree& tree, const TextNodes& nodes) {
  auto all = nodes;
  for (int64_t leaf = tree.leaf_count(); leaf < int64_t{1} << tree.height; ++leaf) all.push_back({{0, leaf}, "0"});
  return joined_in_production({tree.leaf << tree.height, tree.leaf}, all);
}
/// Waits for leaves that are absent.
Texts waiting(const SumTree& tree, const TextNodes& nodes) {
  return joined_in_production({tree.leaf << tree.height, tree.leaf}, nodes);
}
/// Takes the last leaf for absent: its sibling goes up alone.
Texts impatient(const SumTree& tree, const TextNodes& nodes) {
  auto wrong = tree;
  wrong.size = std::max<int64_t>(tree.size - tree.leaf, 1);
  return joined_in_production(wrong, nodes);
}
Texts first_missing(const SumTree& tree, const TextNodes& nodes) {
  return joined_in_production(tree, {nodes.begin() + (nodes.size() > 1), nodes.end()});
}

struct TreeMutant {
  const char* fault;
  TreeParts parts;
};

const TreeMutant kMutants[] = {
    {"leaves of 16", {.over_elements = leaves_of_16}},
    {"leaves of 33", {.over_elements = leaves_of_33}},
    {"half the leaves", {.over_elements = half_the_leaves}},
    {"twice the leaves", {.over_elements = twice_the_leaves}},
    {"leaves rounded down", {.over_elements = leaves_rounded_down}},
    {"one chain", {.over_elements = one_chain}},
    {"leaves one longer", {.over_elements = longer_leaves}},
    {"two samples in a leaf", {.over_samples = pairs_of_samples}},
    {"samples in leaves of elements", {.over_samples = SumTree::over_elements}},
    {"elements in leaves of one", {.over_elements = SumTree::over_samples}},
    {"nodes one to the right", {.cover = one_to_the_right}},
    {"the last node dropped", {.cover = last_dropped}},
    {"the first node twice", {.cover = first_twice}},
    {"leaves for nodes", {.cover = single_leaves}},
    {"a tree of the shard", {.cover = tree_of_the_shard}},
    {"a child for its parent", {.cover = unaligned}},
    {"a boundary one late", {.elements_of = one_late}},
    {"a leaf past the end", {.elements_of = past_the_end}},
    {"the last element missing", {.elements_of = without_the_last}},
    {"two siblings exchanged", {.joined = siblings_exchanged}},
    {"two leaves exchanged", {.joined = leaves_exchanged}},
    {"right before left", {.joined = right_before_left}},
    {"left alone", {.joined = left_alone}},
    {"joined as they come", {.joined = as_they_come}},
    {"joined from left to right", {.joined = from_left_to_right}},
    {"a tree over nodes", {.joined = tree_over_nodes}},
    {"other pairs", {.joined = other_pairs}},
    {"zeros for absent leaves", {.joined = with_zeros}},
    {"waits for absent leaves", {.joined = waiting}},
    {"the last leaf taken for absent", {.joined = impatient}},
    {"a node that never comes", {.joined = first_missing}},
};

TEST(SumTree, ShardsInAnyOrderJoinToTheSum) {
  expect_holds([] { shards_join_to_the_sum({}); });
}

TEST(TreeMutants, AreNoticed) {
  for (const auto& mutant : kMutants) expect_noticed(mutant.fault, [&] { shards_join_to_the_sum(mutant.parts); });
}

}  // namespace
}  // namespace lockstep::testing
