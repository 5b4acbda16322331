#include "core/suggest.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace lockstep {
namespace {

const std::vector<std::string> kKeys = {"tensor_parallel_degree", "pipeline_parallel_degree", "steps", "seed", "tp"};

TEST(Nearest, FindsMisspelledNames) {
  EXPECT_EQ(nearest("tensor_parallel_degre", kKeys), "tensor_parallel_degree");
  EXPECT_EQ(nearest("tensor_paralell_degree", kKeys), "tensor_parallel_degree");
  EXPECT_EQ(nearest("step", kKeys), "steps");
  EXPECT_EQ(nearest("pt", kKeys), "tp");
}

TEST(Nearest, IsSilentWhenNothingIsClose) {
  EXPECT_EQ(nearest("learning_rate", kKeys), std::nullopt);
  EXPECT_EQ(nearest("xy", kKeys), std::nullopt);
  EXPECT_EQ(nearest("", kKeys), std::nullopt);
  EXPECT_EQ(nearest("steps", {}), std::nullopt);
}

TEST(Nearest, AMegabyteIsNotCompared) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::string> names(1000, "local_batch_size");
  EXPECT_EQ(nearest(std::string(1 << 20, 'a'), names), std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{1});
}

TEST(Nearest, TheFirstOfEquallyCloseOnesWins) {
  const std::vector<std::string> names = {"beta1", "beta2"};
  EXPECT_EQ(nearest("beta3", names), "beta1");
}

TEST(EditDistance, CountsEachKindOfEdit) {
  EXPECT_EQ(edit_distance("abc", "abc"), 0);
  EXPECT_EQ(edit_distance("abc", "abxc"), 1);
  EXPECT_EQ(edit_distance("abc", "ac"), 1);
  EXPECT_EQ(edit_distance("abc", "axc"), 1);
  EXPECT_EQ(edit_distance("abc", "acb"), 1);
  EXPECT_EQ(edit_distance("", "abc"), 3);
}

RC_GTEST_PROP(EditDistance, IsSymmetricAndBounded, (const std::string& left, const std::string& right)) {
  const int distance = edit_distance(left, right);
  RC_ASSERT(distance == edit_distance(right, left));
  RC_ASSERT(distance <= static_cast<int>(std::max(left.size(), right.size())));
  RC_ASSERT((distance == 0) == (left == right));
}

}  // namespace
}  // namespace lockstep
