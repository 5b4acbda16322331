// Arrays that are nodes of a sum, added up in one pass: the bits of a joiner that adds two whole arrays at a time.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/kernels/sums/joined_sum_loops.h"

namespace lockstep::kernels {
namespace {

/// Numbers of which no two orders give the same sum.
template <class T>
std::vector<T> numbers(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> result(static_cast<size_t>(count));
  for (auto& number : result)
    number =
        static_cast<T>(std::ldexp(static_cast<double>(random() >> 11) * 0x1p-52 - 1, static_cast<int>(random() % 12)));
  return result;
}

/// The nodes of up to 9 shards that cover some of a tree over samples, in any order.
std::vector<SumNode> any_nodes(const SumTree& tree, uint64_t seed) {
  const auto shards = *rc::gen::inRange<int64_t>(1, 10), absent = *rc::gen::inRange<int64_t>(-9, 10);
  std::vector<SumNode> nodes;
  for (int64_t shard = 0; shard < shards; ++shard) {
    const int64_t start = tree.size * shard / shards, end = tree.size * (shard + 1) / shards;
    if (shard == absent) continue;
    for (const auto& node : cover(tree, start, end - start)) nodes.push_back(node);
  }
  std::shuffle(nodes.begin(), nodes.end(), std::mt19937_64(seed));
  return nodes;
}

template <class T>
std::vector<std::vector<T>> joined(const SumTree& tree, const std::vector<SumNode>& nodes,
                                   const std::vector<std::vector<T>>& arrays) {
  SumJoiner<std::vector<T>> joiner(tree);
  const auto join = [](std::vector<T> left, const std::vector<T>& right) {
    for (size_t i = 0; i < left.size(); ++i) left[i] = left[i] + right[i];
    return left;
  };
  for (size_t n = 0; n < nodes.size(); ++n) joiner.add(nodes[n], arrays[n], join);
  std::vector<std::vector<T>> parts;
  for (auto& part : joiner.parts()) parts.push_back(part.value);
  return parts;
}

template <class T>
void add_in_one_pass() {
  const auto tree = SumTree::over_samples(*rc::gen::inRange<int64_t>(1, 130));
  const auto seed = *rc::gen::arbitrary<uint64_t>();
  const auto nodes = any_nodes(tree, seed);
  const auto count = *rc::gen::element<int64_t>(0, 1, 7, 1023, 1024, 1025, 3000);
  std::vector<std::vector<T>> arrays;
  for (size_t n = 0; n < nodes.size(); ++n) arrays.push_back(numbers<T>(count, seed + n));
  const auto expected = joined(tree, nodes, arrays);

  const JoinedSum sum(tree, nodes);
  RC_ASSERT(sum.parts() == static_cast<int64_t>(expected.size()));
  std::vector<std::vector<T>> results(expected.size(), std::vector<T>(static_cast<size_t>(count), T(-77)));
  std::vector<const T*> from;
  std::vector<T*> to;
  for (const auto& array : arrays) from.push_back(array.data());
  for (auto& result : results) to.push_back(result.data());
  const auto middle = count > 0 ? *rc::gen::inRange<int64_t>(0, count) : 0;  // two threads
  sum.run<T>(from, to, 0, middle);
  const T before(-77);
  if (count > middle && !results.empty()) RC_ASSERT(std::memcmp(&results[0].back(), &before, sizeof(T)) == 0);
  sum.run<T>(from, to, middle, count);
  for (size_t p = 0; p < expected.size(); ++p)
    RC_ASSERT(count == 0 ||
              std::memcmp(expected[p].data(), results[p].data(), static_cast<size_t>(count) * sizeof(T)) == 0);
}

RC_GTEST_PROP(JoinedSums, AreThoseOfTheJoiner, ()) { add_in_one_pass<float>(); }
RC_GTEST_PROP(JoinedSums, OfDoublesToo, ()) { add_in_one_pass<double>(); }

/// If these agreed, the property above would say nothing.
TEST(JoinedSums, TellOrdersApart) {
  const auto a = numbers<float>(1000, 1), b = numbers<float>(1000, 2), c = numbers<float>(1000, 3);
  int64_t apart = 0;
  for (size_t i = 0; i < 1000; ++i) apart += std::abs((a[i] + b[i]) + c[i] - (a[i] + (b[i] + c[i]))) > 0;
  EXPECT_GT(apart, 100);
}

}  // namespace
}  // namespace lockstep::kernels
