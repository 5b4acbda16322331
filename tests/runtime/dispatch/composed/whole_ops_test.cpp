// Ops that every rank computes alone: what their results share, and which of two values a place has.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/calls/sharded_calls.h"
#include "fuzz/cases/tensors.h"
#include "tests/support/threads.h"

namespace lockstep::testing {
namespace {

class WholeOps : public ::testing::TestWithParam<lockstep::Numerics> {
 protected:
  WholeOps() {
    World::Options options;
    options.numerics = GetParam();
    world_ = simulated_world({{"tp", 2}}, std::move(options));
  }
  at::Tensor put(const at::Tensor& plain, const char* layout) const {
    return distribute(plain, Layout::parse(world_->mesh("tp=2"), layout));
  }

  std::unique_ptr<World> world_;
};
INSTANTIATE_TEST_SUITE_P(Both, WholeOps,
                         ::testing::Values(lockstep::Numerics::kNative, lockstep::Numerics::kCanonical));

/// One group moves nothing. LibTorch's result is a copy all the same, and so is the mesh's: a write to it stays there.
TEST_P(WholeOps, AShuffleOfOneGroupIsACopy) {
  const auto plain = exact_tensor({2, 4, 3});
  for (const auto shuffle : {at::channel_shuffle, at::native_channel_shuffle})
    for (const char* layout : {"[tp=R]", "[tp=S(0)]", "[tp=S(1)]", "[tp=S(2)]"})
      for (const int64_t groups : {1, 2, 4}) {
        const auto x = put(plain, layout);
        auto shuffled = shuffle(x, groups);
        const auto expected = shuffle(plain, groups);
        EXPECT_EQ(difference(shuffled, expected, {}, true), "") << layout;
        shuffled.add_(1);
        EXPECT_EQ(difference(shuffled, expected + 1, {}, true), "") << layout;
        EXPECT_EQ(difference(x, plain, {}, true), "") << layout << ", " << groups;
        at::Tensor(x).add_(5);
        EXPECT_EQ(difference(shuffled, expected + 1, {}, true), "") << layout;
      }
}

TEST_P(WholeOps, AShuffleRefusesWhatOneDeviceRefuses) {
  for (const auto shuffle : {at::channel_shuffle, at::native_channel_shuffle}) {
    for (const int64_t groups : {-1, 0, 3})
      EXPECT_TRUE(refuses([&] { shuffle(put(exact_tensor({2, 4, 3}), "[tp=R]"), groups); })) << groups;
    EXPECT_TRUE(refuses([&] { shuffle(put(exact_tensor({2, 4}), "[tp=R]"), 2); }));
  }
}

/// As many values as make LibTorch's threads race for the places that two of them name.
TEST_P(WholeOps, OfValuesForOnePlaceTheLastOneStays) {
  constexpr int64_t kSide = 128, kPlaces = 5;
  const Threads threads(4);
  const auto values = at::arange(2 * kSide * kSide, at::kFloat).reshape({2, 1, kSide, kSide});
  const auto indices = at::arange(2 * kSide * kSide).remainder(kPlaces).reshape(values.sizes());
  auto expected = at::zeros({2, kSide * kSide});
  for (int64_t plane = 1; plane <= 2; ++plane)
    for (int64_t at = plane * kSide * kSide - kPlaces; at < plane * kSide * kSide; ++at)
      expected[plane - 1][at % kPlaces].fill_(static_cast<double>(at));
  for (const char* layout : {"[tp=R]", "[tp=S(0)]", "[tp=S(3)]"})
    for (int again = 0; again < 5; ++again) {
      const auto flat = at::max_unpool2d(put(values, layout), put(indices, layout), {kSide, kSide});
      EXPECT_EQ(difference(flat, expected.reshape(values.sizes()), {}, true), "") << layout;
      const auto deep = at::max_unpool3d(put(values.unsqueeze(2), layout), put(indices.unsqueeze(2), layout),
                                         {1, kSide, kSide}, {1, 1, 1}, {0, 0, 0});
      EXPECT_EQ(difference(deep, expected.reshape({2, 1, 1, kSide, kSide}), {}, true), "") << layout;
    }
}

TEST_P(WholeOps, AnIndexThatIsNoneIsRefused) {
  const auto values = put(exact_tensor({1, 2, 2}), "[tp=R]");
  for (const int64_t index : {-1, 16})
    EXPECT_THROW(at::max_unpool2d(values, put(at::full({1, 2, 2}, index, at::kLong), "[tp=R]"), {4, 4}), c10::Error);
}

}  // namespace
}  // namespace lockstep::testing
