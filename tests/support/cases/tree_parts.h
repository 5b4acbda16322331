#pragma once
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

#include "runtime/kernels/sums/sum_tree.h"

/// A sum over shards, as text that shows every leaf and every join, made of parts that tests may exchange for wrong
/// ones.
namespace lockstep::testing {

using TextNode = std::pair<SumNode, std::string>;

/// What joins nodes, in the order of their arrival; the texts of what is left over, left to right.
inline std::vector<std::string> joined_texts(const SumTree& tree, const std::vector<TextNode>& nodes,
                                             std::string (*join)(std::string, std::string)) {
  SumJoiner<std::string> joiner(tree);
  for (const auto& [place, text] : nodes) joiner.add(place, text, join);
  std::vector<std::string> texts;
  for (const auto& part : joiner.parts()) texts.push_back(part.value);
  return texts;
}

inline std::string join_text(std::string left, std::string right) { return "(" + left + " " + right + ")"; }

inline std::vector<std::string> joined_in_production(const SumTree& tree, const std::vector<TextNode>& nodes) {
  return joined_texts(tree, nodes, join_text);
}

/// The parts of a sum over shards; by default production's.
struct TreeParts {
  SumTree (*over_elements)(int64_t) = SumTree::over_elements;
  SumTree (*over_samples)(int64_t) = SumTree::over_samples;
  std::vector<SumNode> (*cover)(const SumTree&, int64_t, int64_t) = lockstep::cover;
  SumRange (*elements_of)(const SumTree&, const SumNode&) = lockstep::elements_of;
  std::vector<std::string> (*joined)(const SumTree&, const std::vector<TextNode>&) = joined_in_production;
};

inline std::string leaf_text(int64_t start, int64_t end) {
  return std::to_string(start) + "-" + std::to_string(end) + "|";
}

/// docs/numerics.md in the plainest words: 2^h leaves, h as large as leaves of 32 and 64 leaves allow; the left part of
/// a sum of several leaves has the largest power of two of them that leaves some to the right.
inline std::string sum_in_plain_words(int64_t size, bool samples) {
  int64_t leaves = 1;
  while (leaves < 64 && size / (2 * leaves) >= 32) leaves *= 2;
  const int64_t leaf = samples ? 1 : (size + leaves - 1) / leaves;
  const auto sum = [&](const auto& self, int64_t first, int64_t count) -> std::string {
    if (count == 1) return leaf_text(first * leaf, std::min((first + 1) * leaf, size));
    const auto left = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count - 1)));
    return join_text(self(self, first, left), self(self, first + left, count - left));
  };
  return sum(sum, 0, (size + leaf - 1) / leaf);
}

/// What a rank makes of one node.
inline std::string node_text(const TreeParts& parts, const SumTree& tree, const SumNode& node) {
  const auto [start, end] = parts.elements_of(tree, node);
  if (node.height == 0) return leaf_text(start, end);
  const SumNode left{node.height - 1, node.index * 2}, right{node.height - 1, node.index * 2 + 1};
  if (parts.elements_of(tree, right).start >= tree.size) return node_text(parts, tree, left);
  return join_text(node_text(parts, tree, left), node_text(parts, tree, right));
}

/// Small and large ones, and those about a power of two, where trees grow.
inline int64_t draw_element_count() {
  const auto near = rc::gen::map(rc::gen::pair(rc::gen::inRange(5, 13), rc::gen::inRange<int64_t>(-3, 4)),
                                 [](const auto& at) { return (int64_t{1} << at.first) + at.second; });
  return *rc::gen::weightedOneOf<int64_t>(
      {{1, rc::gen::inRange<int64_t>(1, 200)}, {1, near}, {2, rc::gen::inRange<int64_t>(1, 20000)}});
}

/// Boundaries of 1 to 33 shards, in leaves: uneven ones, and empty ones.
inline std::vector<int64_t> draw_cuts(int64_t leaves) {
  const auto shards = *rc::gen::inRange<size_t>(1, 34);
  const bool even = *rc::gen::arbitrary<bool>();
  std::vector<int64_t> cuts;
  if (even)
    for (size_t shard = 1; shard < shards; ++shard)
      cuts.push_back(leaves * static_cast<int64_t>(shard) / static_cast<int64_t>(shards));
  else
    cuts = *rc::gen::container<std::vector<int64_t>>(shards - 1, rc::gen::inRange<int64_t>(0, leaves + 1));
  cuts.insert(cuts.end(), {0, leaves});
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

/// The nodes of a shard are the fewest that make it up.
inline bool is_maximal(const SumTree& tree, const SumNode& node, int64_t start, int64_t end) {
  if (node.height == tree.height) return true;
  const auto parent = elements_of(tree, node.parent());
  return parent.start < start || parent.end > end;
}

/// Property: the nodes of any shards, arriving in any order, join to the sum in plain words.
inline void shards_join_to_the_sum(const TreeParts& parts) {
  const bool samples = *rc::gen::arbitrary<bool>();
  const int64_t size = samples ? *rc::gen::inRange<int64_t>(1, 300) : draw_element_count();
  const SumTree tree = (samples ? parts.over_samples : parts.over_elements)(size);
  const auto cuts = draw_cuts(tree.leaf_count());
  std::vector<TextNode> nodes;
  for (size_t shard = 1; shard < cuts.size(); ++shard) {
    const int64_t start = std::min(cuts[shard - 1] * tree.leaf, size), end = std::min(cuts[shard] * tree.leaf, size);
    for (const auto& node : parts.cover(tree, start, end - start)) {
      RC_ASSERT(is_maximal(tree, node, start, end));
      nodes.emplace_back(node, node_text(parts, tree, node));
    }
  }
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937(*rc::gen::arbitrary<uint32_t>()));
  RC_ASSERT(parts.joined(tree, nodes) == std::vector<std::string>{sum_in_plain_words(size, samples)});
}

}  // namespace lockstep::testing
