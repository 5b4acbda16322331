// What two recordings say of each other: of the numerics versions that made them, and of what only one of them has.
#include "replay/view/trace_diff.h"

#include <gtest/gtest.h>

#include <bit>
#include <functional>

namespace lockstep::replay {
namespace {

StepRecording of_version(const char* version, uint64_t loss = 1) {
  StepRecording recording;
  recording.scalars = {{"loss", loss}};
  if (version) recording.machine = {{"numerics_version", version}};
  return recording;
}

TEST(TraceDiff, NamesTwoNumericsVersions) {
  EXPECT_EQ(diff(of_version("4"), of_version("4", 2)).numerics, "");
  EXPECT_EQ(diff(of_version("4"), of_version("5")).numerics,
            "left by numerics version 4, right by numerics version 5: canonical bits may differ for that alone");
}

TEST(TraceDiff, SaysThatAVersionIsNotKnownWhereSomethingDiffers) {
  EXPECT_EQ(diff(of_version(nullptr), of_version("5")).numerics, "");
  EXPECT_EQ(diff(of_version(nullptr), of_version("5", 2)).numerics,
            "left by a numerics version that is not known, right by numerics version 5: canonical bits may differ for "
            "that alone");
  EXPECT_EQ(diff(of_version(nullptr), of_version(nullptr, 2)).numerics, "");
}

/// An op with two results.
StepRecording recorded() {
  StepRecording r;
  r.names = {"", "linear", "Float[2] [tp=R]", "Float[2] [tp=S(0)]"};
  r.scalars = {{"loss", std::bit_cast<uint64_t>(2.5)}};
  r.ops = {{{1, 0, 0, 1, 0}, 1, 4}, {{1, 0, 0, 1, 1}, 5, 9}};
  r.results = {{0, 0, ResultKind::kDigest, 2, 8, {1, 1}}, {1, 0, ResultKind::kDigest, 2, 8, {2, 2}}};
  r.rows = 1, r.seq_len = 2;
  r.tokens = {5, 6}, r.labels = {6, 7};
  return r;
}

TraceDiff diff_after(const std::function<void(StepRecording&)>& change) {
  auto right = recorded();
  change(right);
  return diff(recorded(), right);
}

TEST(TraceDiff, OfTheSameIsEqual) {
  const auto same = diff_after([](auto&) {});
  EXPECT_TRUE(same.agrees() && same.is_comparable());
  EXPECT_EQ(same.all.same, 2U);
}

TEST(TraceDiff, OfNothingComparableIsNotEqual) {
  auto left = recorded(), right = recorded();
  left.results.clear(), right.results.clear();
  EXPECT_FALSE(diff(left, right).is_comparable());
  const auto cut = diff_after([](auto& r) { r.results[0].layout = r.results[1].layout = 3; });
  EXPECT_FALSE(cut.is_comparable());
  EXPECT_EQ(cut.all.incomparable, 2U);
  EXPECT_FALSE(diff_after([](auto& r) { r.results[0].kind = r.results[1].kind = ResultKind::kAlias; }).is_comparable());
}

TEST(TraceDiff, WhatOnlyOneHasDiffers) {
  EXPECT_EQ(diff_after([](auto& r) { r.results.pop_back(); }).all.only_left, 1U);
  EXPECT_EQ(diff_after([](auto& r) { r.results.push_back(r.results[0]); }).all.only_right, 1U);
  EXPECT_EQ(diff_after([](auto& r) { r.scalars.clear(); }).scalars, std::vector<std::string>{"loss: 2.5, none"});
  EXPECT_EQ(diff_after([](auto& r) {
              r.scalars.push_back({"rate", std::bit_cast<uint64_t>(0.5)});
            }).scalars,
            std::vector<std::string>{"rate: none, 0.5"});
}

TEST(TraceDiff, StatesAreComparedWhereBothAreKnown) {
  const std::string one(32, '1'), two(32, '2');
  auto left = recorded(), right = recorded();
  left.state_digest = one;
  EXPECT_TRUE(diff(left, right).agrees());
  right.state_digest = one;
  EXPECT_TRUE(diff(left, right).agrees());
  right.state_digest = two;
  EXPECT_EQ(diff(left, right).state, one + ", " + two);
  EXPECT_FALSE(diff(left, right).agrees());
}

TEST(TraceDiff, BatchesAreCompared) {
  EXPECT_EQ(diff_after([](auto& r) { r.tokens[1] = 9; }).batch, "other tokens");
  EXPECT_EQ(diff_after([](auto& r) { r.labels[1] = 9; }).batch, "other labels");
  EXPECT_EQ(diff_after([](auto& r) { r.first_sample = 4; }).batch, "first sample 0, first sample 4");
  EXPECT_EQ(diff_after([](auto& r) { r.rows = 3, r.seq_len = 4; }).batch, "1 x 2 tokens, 3 x 4 tokens");
  EXPECT_FALSE(diff_after([](auto& r) { r.tokens[1] = 9; }).agrees());
}

}  // namespace
}  // namespace lockstep::replay
