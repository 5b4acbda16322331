#include "trainer/checkpoint/exact_cover.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>

namespace lockstep::trainer {
namespace {

using Shape = std::vector<int64_t>;

constexpr const char* kOverlaps = "chunks that do not overlap";
constexpr const char* kHoles = "chunks that cover the tensor";

/// What is meant, element by element: how many boxes hold each.
bool covers_exactly(const Shape& shape, const std::vector<Box>& boxes) {
  Shape at(shape.size());
  for (int64_t left = Box::whole(shape).elements(); left > 0; --left) {
    const auto holds = [&](const Box& box) {
      for (size_t d = 0; d < shape.size(); ++d)
        if (at[d] < box.offset[d] || at[d] >= box.offset[d] + box.size[d]) return false;
      return true;
    };
    if (std::count_if(boxes.begin(), boxes.end(), holds) != 1) return false;
    for (size_t d = shape.size(); d-- > 0 && ++at[d] == shape[d];) at[d] = 0;
  }
  return true;
}

/// Pairs, as they were compared before.
bool covers_by_pairs(const Shape& shape, const std::vector<Box>& boxes) {
  auto missing = Box::whole(shape).elements();
  for (size_t i = 0; i < boxes.size(); ++i) {
    missing -= boxes[i].elements();
    for (size_t j = 0; j < i; ++j)
      if (boxes[i].overlap(boxes[j]).elements() != 0) return false;
  }
  return missing == 0;
}

/// From `least` to `most`, whatever size RapidCheck is at.
template <class T>
T any_of(T least, T most) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(least, most + 1));
}

Shape any_shape() {
  Shape shape(any_of<size_t>(0, 3));
  for (auto& size : shape) size = any_of<int64_t>(any_of(0, 9) == 0 ? 0 : 1, 5);
  return shape;
}

/// Cuts a box again and again, so that it is covered, also by empty parts.
std::vector<Box> any_cut(const Shape& shape) {
  std::vector<Box> boxes{Box::whole(shape)};
  const int cuts = shape.empty() ? 0 : any_of(0, 6);
  for (int i = 0; i < cuts; ++i) {
    const auto which = any_of<size_t>(0, boxes.size() - 1), d = any_of<size_t>(0, shape.size() - 1);
    auto right = boxes[which];
    const auto left = any_of<int64_t>(0, right.size[d]);
    boxes[which].size[d] = left;
    right.offset[d] += left;
    right.size[d] -= left;
    boxes.push_back(right);
  }
  return boxes;
}

Box any_box(const Shape& shape) {
  Box box = Box::whole(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    box.offset[d] = any_of<int64_t>(0, shape[d]);
    box.size[d] = any_of<int64_t>(0, shape[d] - box.offset[d]);
  }
  return box;
}

RC_GTEST_PROP(ExactCover, AcceptsEveryCut, ()) {
  const auto shape = any_shape();
  RC_ASSERT(cover_problem(shape, any_cut(shape)).empty());
}

RC_GTEST_PROP(ExactCover, JudgesAsComparingPairsDid, ()) {
  const auto shape = any_shape();
  auto boxes = any_cut(shape);
  for (int changes = any_of(0, 3); changes > 0; --changes) boxes[any_of<size_t>(0, boxes.size() - 1)] = any_box(shape);
  const bool expected = covers_by_pairs(shape, boxes);
  RC_CLASSIFY(expected, "covers");
  RC_CLASSIFY(!expected, "does not");
  RC_ASSERT(covers_exactly(shape, boxes) == expected);
  RC_ASSERT(cover_problem(shape, boxes).empty() == expected);
}

TEST(ExactCover, SaysWhatIsWrong) {
  EXPECT_EQ(cover_problem({4}, std::vector<Box>{{{0}, {2}}, {{2}, {1}}}), kHoles);
  EXPECT_EQ(cover_problem({4}, std::vector<Box>{{{0}, {2}}, {{1}, {3}}}), kOverlaps);
  EXPECT_EQ(cover_problem({4}, std::vector<Box>{{{0}, {2}}, {{1}, {2}}}), kOverlaps) << "and a hole";
  EXPECT_EQ(cover_problem({2, 2}, std::vector<Box>{{{0, 0}, {1, 2}}, {{0, 1}, {2, 1}}}), kOverlaps);
  EXPECT_EQ(cover_problem({4}, {}), kHoles);
  EXPECT_EQ(cover_problem({4, 0}, {}), "");
  EXPECT_EQ(cover_problem({}, {}), kHoles) << "a scalar is one element";
  EXPECT_EQ(cover_problem({}, std::vector<Box>{{}}), "");
  EXPECT_EQ(cover_problem({}, std::vector<Box>{{}, {}}), kOverlaps);
}

TEST(ExactCover, APinwheelCovers) {
  const std::vector<Box> boxes{
      {{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}};
  EXPECT_EQ(cover_problem({3, 3}, boxes), "");
}

TEST(ExactCover, HugeBoxesDoNotOverflow) {
  constexpr int64_t kMost = int64_t{1} << 62;
  EXPECT_EQ(cover_problem({kMost}, std::vector<Box>(5, {{0}, {kMost}})), kOverlaps);
  EXPECT_EQ(cover_problem({kMost}, std::vector<Box>{{{0}, {kMost - 1}}, {{kMost - 1}, {1}}}), "");
}

TEST(ExactCover, CutsAlongManyDimensionsAreRefused) {
  const Shape shape(60, 2);
  auto half = Box::whole(shape), other = half;
  for (auto& size : half.size) size = 1;
  for (auto& size : other.size) size = 1;
  other.offset.assign(60, 1);
  EXPECT_EQ(cover_problem(shape, std::vector<Box>{half, other}), kHoles);
  // All of the elements, so that nothing simpler is wrong: 2^9 single ones.
  const Shape nine(9, 2);
  std::vector<Box> ones;
  for (size_t i = 0; i < 512; ++i) {
    Box one{Shape(9), Shape(9, 1)};
    for (size_t d = 0; d < 9; ++d) one.offset[d] = static_cast<int64_t>(i >> d & 1);
    ones.push_back(one);
  }
  EXPECT_EQ(cover_problem(nine, ones), "chunks that are cut along at most 8 dimensions");
}

TEST(ExactCover, ManyChunksTakeNoTime) {
  constexpr int64_t kCount = 60'000;
  std::vector<Box> boxes, empty(kCount, {{0, 0}, {0, 1}});
  for (int64_t i = 0; i < kCount; ++i) boxes.push_back({{0, i}, {7, 1}});
  empty.push_back({{0, 0}, {7, kCount}});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(cover_problem({7, kCount}, boxes), "");
  EXPECT_EQ(cover_problem({7, kCount}, empty), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{2});
}

}  // namespace
}  // namespace lockstep::trainer
