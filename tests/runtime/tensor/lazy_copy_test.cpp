// Lazy copies: the bytes of their source until either is written.
#include "runtime/plain/lazy_copy.h"

#include <gtest/gtest.h>

#include "fuzz/cases/tensors.h"

namespace lockstep::testing {
namespace {

bool share(const at::Tensor& a, const at::Tensor& b) { return a.const_data_ptr() == b.const_data_ptr(); }

void add_one(at::Tensor tensor) {
  before_write(tensor);
  tensor.add_(1);
}

TEST(LazyCopy, SharesBytesUntilItIsWritten) {
  const auto source = exact_tensor({3, 4});
  const auto before = source.clone();
  const auto copy = lazy_copy(source);
  EXPECT_TRUE(share(copy, source));
  add_one(copy);
  EXPECT_FALSE(share(copy, source));
  EXPECT_TRUE(same_bits(source, before));
  EXPECT_TRUE(same_bits(copy, before + 1));
}

TEST(LazyCopy, KeepsItsValuesWhenTheSourceIsWritten) {
  const auto source = exact_tensor({3, 4});
  const auto before = source.clone();
  const auto first = lazy_copy(source), second = lazy_copy(first);
  const auto view = second.t();
  add_one(source);
  EXPECT_TRUE(same_bits(first, before));
  EXPECT_TRUE(same_bits(second, before));
  EXPECT_TRUE(same_bits(view, before.t()));
  EXPECT_TRUE(same_bits(source, before + 1));
}

TEST(LazyCopy, SharesItsFateWithItsViews) {
  const auto source = exact_tensor({3, 4});
  const auto before = source.clone();
  const auto copy = lazy_copy(source.narrow(0, 1, 2));
  auto view = copy.select(0, 0);
  add_one(view);
  EXPECT_TRUE(same_bits(source, before));
  EXPECT_TRUE(same_bits(copy.select(0, 0), before.select(0, 1) + 1));
  EXPECT_TRUE(same_bits(copy.select(0, 1), before.select(0, 2)));
}

/// One of many parts would keep all of them, and copy all of them when it is written.
TEST(LazyCopy, OfAPartIsACopyOfThatPart) {
  const auto source = exact_tensor({100, 4});
  const auto part = lazy_copy(source.narrow(0, 3, 2));
  EXPECT_TRUE(same_bits(part, source.narrow(0, 3, 2)));
  EXPECT_EQ(part.storage().nbytes(), 2 * 4 * sizeof(float));
  EXPECT_FALSE(share(part, source.narrow(0, 3, 2)));
}

TEST(LazyCopy, OutlivesItsSource) {
  at::Tensor copy;
  {
    const auto source = exact_tensor({5});
    copy = lazy_copy(source);
  }
  add_one(copy);
  EXPECT_TRUE(same_bits(copy, exact_tensor({5}) + 1));
}

TEST(LazyCopy, OfNothingIsNothing) {
  const auto copy = lazy_copy(exact_tensor({0, 3}));
  EXPECT_EQ(copy.sizes(), c10::IntArrayRef({0, 3}));
  before_write(copy);
}

}  // namespace
}  // namespace lockstep::testing
