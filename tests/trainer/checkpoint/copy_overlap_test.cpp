#include "trainer/checkpoint/copy_overlap.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/box.h"

namespace lockstep::trainer {
namespace {

constexpr auto kMax = std::numeric_limits<int64_t>::max();

TEST(Box, InsideHoldsForAnyNumbers) {
  EXPECT_TRUE((Box{{0, 2}, {3, 2}}.inside({3, 4})));
  EXPECT_TRUE((Box{{3, 4}, {0, 0}}.inside({3, 4})));
  EXPECT_TRUE((Box{{}, {}}.inside({})));
  EXPECT_FALSE((Box{{0, 3}, {3, 2}}.inside({3, 4})));
  EXPECT_FALSE((Box{{kMax}, {kMax}}.inside({kMax})));
  EXPECT_FALSE((Box{{-1}, {1}}.inside({3})));
  EXPECT_FALSE((Box{{0}, {1}}.inside({3, 4})));
}

TEST(Box, OverlapOfBoxesApartIsEmpty) {
  EXPECT_EQ((Box{{0, 0}, {2, 4}}.overlap({{1, 1}, {4, 2}})), (Box{{1, 1}, {1, 2}}));
  EXPECT_EQ((Box{{0}, {2}}.overlap({{5}, {2}})).elements(), 0);
}

TEST(CopyOverlap, CopiesAScalar) {
  const std::byte source[] = {std::byte{7}, std::byte{8}};
  std::byte target[2] = {};
  copy_overlap({}, source, {}, target, 2);
  EXPECT_EQ(target[1], std::byte{8});
}

/// Every element of the tensor is its own index; a box of it in row-major order.
std::vector<uint16_t> indices(const std::vector<int64_t>& shape, const Box& box) {
  std::vector<uint16_t> values;
  for (int64_t linear = 0; linear < Box::whole(shape).elements(); ++linear) {
    bool in = true;
    auto rest = linear;
    for (auto d = shape.size(); d-- > 0; rest /= shape[d]) {
      const auto coordinate = rest % shape[d];
      in = in && coordinate >= box.offset[d] && coordinate < box.offset[d] + box.size[d];
    }
    if (in) values.push_back(static_cast<uint16_t>(linear));
  }
  return values;
}

Box any_box(const std::vector<int64_t>& shape) {
  Box box;
  for (const auto size : shape) {
    box.offset.push_back(*rc::gen::inRange<int64_t>(0, size + 1));
    box.size.push_back(*rc::gen::inRange<int64_t>(0, size - box.offset.back() + 1));
  }
  return box;
}

/// How many elements were not as they should be.
int64_t wrong_elements(const std::vector<int64_t>& shape, const Box& from, const Box& to) {
  const auto source = indices(shape, from), wanted = indices(shape, to);
  constexpr uint16_t kUntouched = 60000;
  std::vector<uint16_t> target(wanted.size(), kUntouched);
  copy_overlap(from, std::as_bytes(std::span(source)), to, std::as_writable_bytes(std::span(target)), 2);
  int64_t wrong = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    const bool common = std::find(source.begin(), source.end(), wanted[i]) != source.end();
    wrong += target[i] != (common ? wanted[i] : kUntouched);
  }
  return wrong;
}

RC_GTEST_PROP(CopyOverlap, MovesExactlyTheCommonElements, ()) {
  std::vector<int64_t> shape(*rc::gen::inRange<size_t>(0, 4));
  for (auto& size : shape) size = *rc::gen::inRange<int64_t>(0, 6);
  RC_ASSERT(wrong_elements(shape, any_box(shape), any_box(shape)) == 0);
}

/// Boxes of several rows in every dimension are rare among drawn ones.
TEST(CopyOverlap, GoesThroughTheRowsOfAllDimensions) {
  EXPECT_EQ(wrong_elements({3, 4, 5}, Box::whole({3, 4, 5}), {{1, 1, 1}, {2, 3, 3}}), 0);
  EXPECT_EQ(wrong_elements({3, 4, 5}, {{0, 1, 0}, {3, 3, 4}}, {{1, 0, 1}, {2, 3, 4}}), 0);
  EXPECT_EQ(wrong_elements({3, 4, 5, 6}, {{0, 1, 1, 1}, {3, 3, 4, 5}}, {{1, 0, 2, 2}, {2, 4, 3, 3}}), 0);
}

}  // namespace
}  // namespace lockstep::trainer
