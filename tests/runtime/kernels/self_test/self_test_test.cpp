#include "runtime/kernels/self_test/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <ctime>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/sanitized.h"
#include "runtime/kernels/self_test/self_test_comparer.h"
#include "runtime/kernels/sums/ordered_sum_oracle.h"
#include "tests/support/instruction_sets.h"

namespace lockstep {
namespace {

using kernels::SelfTestCase;

std::string message_of(const kernels::Tamper& tamper) {
  try {
    kernels::self_test(tamper);
  } catch (const Inconsistency& error) {
    return error.what();
  }
  return "";
}

TEST(SelfTest, PassesHereAndIsQuick) {
  // Processor time: others may be at work here.
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int i = 0; i < 5; ++i) {
    const auto start = std::clock();
    kernels::self_test();
    least = std::min(least, std::clock() - start);
  }
#if defined(NDEBUG)
  EXPECT_LT(static_cast<double>(least) / CLOCKS_PER_SEC, kSanitized ? 5 : 0.05);
#endif
}

class SelfTestOfSet : public testing::OnInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, SelfTestOfSet, testing::every_set(), testing::set_name);

TEST_P(SelfTestOfSet, RunsEveryKernelAtOddAddresses) {
  std::set<std::string> seen;
  std::set<int64_t> offsets;
  kernels::self_test([&](const SelfTestCase& which, void*, size_t) {
    if (which.set != GetParam()) return;
    seen.insert(which.kernel);
    offsets.insert(which.offset);
  });
  for (const char* kernel :
       {"matrix product", "matrix product of bfloat16", "attention", "attention backward", "sum along rows",
        "sum along columns", "sum of exponentials", "RMSNorm", "RMSNorm backward", "SwiGLU", "SwiGLU backward",
        "rotary embedding", "cross-entropy backward", "AdamW"})
    EXPECT_TRUE(seen.contains(kernel)) << kernel;
  const bool is_baseline = GetParam() == InstructionSet::kBaseline;
  EXPECT_TRUE(!is_baseline || (seen.contains("table gradient") && seen.contains("tree")));
  for (int64_t offset = 4; offset <= 60; offset += 4) EXPECT_TRUE(offsets.contains(offset)) << offset;
}

/// One bit of one result, for every result that there is.
TEST(SelfTest, NoticesOneBitInAnyResult) {
  int64_t all = 0;
  const auto count = [&](const SelfTestCase&, void*, size_t) { ++all; };
  EXPECT_EQ(message_of(count), "");
  for (int64_t changed = 0; changed < all; changed += 7) {
    int64_t now = 0;
    SelfTestCase which{};
    const auto message = message_of([&](const SelfTestCase& each, void* result, size_t bytes) {
      if (now++ != changed) return;
      which = each;
      static_cast<unsigned char*>(result)[(static_cast<size_t>(changed) * 4) % bytes] ^= 1;
    });
    EXPECT_THAT(message, ::testing::StartsWith("self-test: " + std::string(which.kernel) + " on " +
                                               std::string(name_of(which.set))));
  }
}

/// A row kernel that treats what is left of a vector otherwise: the last element differs in its last bit.
TEST_P(SelfTestOfSet, RefusesRowKernelsWithAnotherTail) {
  for (const std::string kernel : {"RMSNorm backward", "SwiGLU", "rotary embedding", "AdamW"}) {
    const auto message = message_of([&](const SelfTestCase& which, void* result, size_t bytes) {
      if (which.kernel == kernel && which.set == GetParam()) static_cast<unsigned char*>(result)[bytes - 4] ^= 1;
    });
    EXPECT_THAT(message, ::testing::StartsWith("self-test: " + kernel + " on " + std::string(name_of(GetParam()))));
  }
}

TEST(SelfTest, SaysWhatDiffersWhereAndWhatToDo) {
  const auto set = available_instruction_sets().back();
  const auto message = message_of([&](const SelfTestCase& which, void* result, size_t) {
    if (which.kernel == std::string("sum along rows") && which.set == set && which.offset == 12)
      static_cast<float*>(result)[1] = 1;
  });
  EXPECT_THAT(message, ::testing::MatchesRegex(
                           "self-test: sum along rows on .*, operands 12 bytes past a cache line: element 1 of .* is "
                           "0x1p\\+0, the order that canonical numerics promises gives .*0x.*\\. Build without .*"
                           "-ffast-math.*numerics.mode = \"native\" does without the promise"));
}

TEST(SelfTest, RefusesAnotherRoundingMode) {
  std::fesetround(FE_UPWARD);
  std::string message;
  try {
    kernels::self_test();
  } catch (const InternalError& error) {
    message = error.what();
  }
  std::fesetround(FE_TONEAREST);
  EXPECT_THAT(message, ::testing::HasSubstr("rounding mode"));
}

/// A self-test whose numbers gave the same bits in any order would prove nothing.
TEST(SelfTest, ItsNumbersTellOrdersApart) {
  constexpr int64_t kCount = 333, kColumns = 19;
  auto x = kernels::any_numbers<float>(kCount * kColumns, 0, 11);
  const auto sums = [&](const SumTree& along) {
    std::vector<float> result(kColumns);
    kernels::ordered_sum_oracle<float>({along, 0, 1, kCount, kColumns}, x.data(), result.data());
    return result;
  };
  const auto tree = SumTree::over_elements(kCount);
  for (const int64_t leaf : {29, 35, 41, 43, 50, 64, 333})
    EXPECT_NE(sums(tree), sums({kCount, leaf})) << "leaves of " << leaf;
}

}  // namespace
}  // namespace lockstep
