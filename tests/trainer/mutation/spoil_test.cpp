#include "trainer/mutation/spoil.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

namespace lockstep::trainer {
namespace {

constexpr Change kAll[] = {Change::kTimes,      Change::kPlus,    Change::kZero, Change::kNegate,
                           Change::kRoll,       Change::kReverse, Change::kBit,  Change::kElement,
                           Change::kLastRow,    Change::kRounded, Change::kOld,  Change::kOtherRank,
                           Change::kOtherGroup, Change::kBefore};

at::Tensor value() { return at::arange(1, 13, at::kFloat).view({4, 3}).div(7); }

/// Each makes another value, in place; what nothing changes says so.
TEST(Spoil, ChangesWhatItSays) {
  for (const auto change : kAll) {
    Memory memory;
    const auto x = value();
    EXPECT_TRUE(spoil(change, 2, x, value().neg(), "key", memory)) << to_text(change);
    EXPECT_FALSE(at::equal(x, value())) << to_text(change);
  }
  Memory memory;
  EXPECT_FALSE(spoil(Change::kTimes, 1, value(), {}, "key", memory));
  EXPECT_FALSE(spoil(Change::kZero, 0, at::zeros({3}), {}, "key", memory));
  EXPECT_FALSE(spoil(Change::kOtherRank, 0, value(), at::zeros({2}), "key", memory));
  EXPECT_FALSE(spoil(Change::kTimes, 2, at::zeros({0, 3}), {}, "key", memory));
}

TEST(Spoil, IntegersAndBoolsStayWhatTheyAre) {
  for (const auto change :
       {Change::kTimes, Change::kPlus, Change::kZero, Change::kRoll, Change::kElement, Change::kBit}) {
    Memory memory;
    const auto counts = at::arange(5, 11), flags = counts.remainder(3).eq(0);
    const auto before = flags.clone();
    EXPECT_TRUE(spoil(change, 2, counts, {}, "counts", memory)) << to_text(change);
    EXPECT_TRUE(spoil(change, 2, flags, {}, "flags", memory)) << to_text(change);
    EXPECT_FALSE(at::equal(flags, before)) << to_text(change);
  }
}

TEST(Spoil, RemembersTheValueOfTheTimeBefore) {
  Memory memory;
  const auto first = value(), second = value().mul(3);
  EXPECT_TRUE(spoil(Change::kOld, 0, first, {}, "key", memory));
  EXPECT_EQ(first.abs().max().item<float>(), 0);
  EXPECT_TRUE(spoil(Change::kOld, 0, second, {}, "key", memory));
  EXPECT_TRUE(at::equal(second, value()));
  const auto other = value();
  spoil(Change::kOld, 0, other, {}, "another key", memory);
  EXPECT_EQ(other.abs().max().item<float>(), 0);
}

TEST(Spoil, OneBitIsOneBit) {
  for (int amount = 0; amount < 40; ++amount) {
    Memory memory;
    const auto x = value();
    EXPECT_TRUE(spoil(Change::kBit, amount, x, {}, "key", memory));
    const auto words = at::bitwise_xor(x.view(at::kInt), value().view(at::kInt)).view({-1});
    EXPECT_EQ(at::ne(words, 0).sum().item<int64_t>(), 1) << amount;
    EXPECT_EQ(words.sum().item<int64_t>(), int64_t{1} << (20 + amount % 11)) << "a high one";
  }
}

/// Of small elements, too: what lies beside them stays.
TEST(Spoil, ABitIsOfTheElement) {
  for (const auto dtype : {at::kBFloat16, at::kByte, at::kBool})
    for (int amount = 0; amount < 12; ++amount) {
      Memory memory;
      const auto before = at::ones({3}).to(dtype), x = before.clone();
      EXPECT_TRUE(spoil(Change::kBit, amount, x, {}, "key", memory));
      EXPECT_EQ(at::ne(x, before).sum().item<int64_t>(), 1) << dtype << " " << amount;
    }
}

/// The strides of a view are kept, and so is what lies beside it.
TEST(Spoil, WritesThroughViews) {
  Memory memory;
  const auto whole = at::arange(20, at::kFloat).view({4, 5}).clone();
  spoil(Change::kZero, 0, whole.narrow(1, 1, 2), {}, "key", memory);
  EXPECT_EQ(whole.sum().item<float>(), at::arange(20, at::kFloat).view({4, 5}).sum().item<float>() -
                                           at::arange(20, at::kFloat).view({4, 5}).narrow(1, 1, 2).sum().item<float>());
}

}  // namespace
}  // namespace lockstep::trainer
