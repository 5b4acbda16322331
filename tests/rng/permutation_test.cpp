#include "rng/permutation.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "core/error.h"

namespace lockstep::rng {
namespace {

RC_GTEST_PROP(Permutation, IsOneToOne, ()) {
  const auto n = *rc::gen::element<uint64_t>(1, 2, 3, 255, 256, 257, 258, 511, 512, 513, 1000, 1024, 4097, 20000);
  const Permutation permutation(Key{*rc::gen::arbitrary<uint64_t>()}, *rc::gen::arbitrary<uint64_t>(), n);
  std::vector<bool> seen(n);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t target = permutation(i);
    RC_ASSERT(target < n);
    RC_ASSERT(!seen[target]);
    seen[target] = true;
  }
}

RC_GTEST_PROP(Permutation, HoldsForHugeSizes, ()) {
  const uint64_t n = (uint64_t{1} << 62) - *rc::gen::inRange<uint64_t>(0, 1000);
  const Permutation permutation(Key{1}, 2, n);
  const uint64_t i = *rc::gen::inRange<uint64_t>(0, n), j = *rc::gen::inRange<uint64_t>(0, n);
  RC_ASSERT(permutation(i) < n);
  RC_ASSERT((permutation(i) == permutation(j)) == (i == j));
}

TEST(Permutation, BadSizesAreRefused) {
  EXPECT_THROW(Permutation(Key{1}, 1, 0), BadInput);
  EXPECT_THROW(Permutation(Key{1}, 1, (uint64_t{1} << 62) + 1), BadInput);
  EXPECT_THROW(Permutation(Key{1}, 1, 10)(10), InternalError);
}

TEST(Permutation, IsPinned) {  // data orders of saved runs depend on it
  const Permutation small(Key{7}, 11, 10), large(Key{7}, 11, 1000000);
  std::vector<uint64_t> values;
  for (uint64_t i = 0; i < 10; ++i) values.push_back(small(i));
  for (uint64_t i = 0; i < 4; ++i) values.push_back(large(i));
  EXPECT_EQ(values, (std::vector<uint64_t>{3, 7, 1, 9, 4, 5, 6, 0, 2, 8, 985833, 413436, 688853, 244991}));
}

/// Chi-square of counts that should be equal; about normal with mean 0 and deviation 1 after standardising.
double standardised_chi_square(const std::vector<int>& counts, double expected) {
  double sum = 0;
  for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST(Permutation, SmallOnesTakeEveryOrderEquallyOften) {
  std::map<std::vector<uint64_t>, int> orders;
  constexpr int kTrials = 24000;
  for (uint64_t stream = 0; stream < kTrials; ++stream) {
    const Permutation permutation(Key{5}, stream, 4);
    ++orders[{permutation(0), permutation(1), permutation(2), permutation(3)}];
  }
  ASSERT_EQ(orders.size(), 24u);
  std::vector<int> counts;
  for (const auto& [order, count] : orders) counts.push_back(count);
  EXPECT_LT(std::abs(standardised_chi_square(counts, kTrials / 24.0)), 4.5);
}

TEST(Permutation, LargeOnesSendEveryIndexEverywhere) {
  constexpr uint64_t kSize = 300, kTrials = 60000;  // just above the table: the network on 9 bits
  std::vector<int> of_first(kSize), gap(kSize);
  for (uint64_t stream = 0; stream < kTrials; ++stream) {
    const Permutation permutation(Key{6}, stream, kSize);
    const uint64_t first = permutation(0), second = permutation(1);
    ++of_first[first];
    ++gap[(second + kSize - first) % kSize];
  }
  gap.erase(gap.begin());  // a gap of 0 cannot be
  EXPECT_LT(std::abs(standardised_chi_square(of_first, kTrials / double{kSize})), 4.5);
  EXPECT_LT(std::abs(standardised_chi_square(gap, kTrials / double{kSize - 1})), 4.5);
}

}  // namespace
}  // namespace lockstep::rng
