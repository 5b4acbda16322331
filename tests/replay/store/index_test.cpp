#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "replay/store/recording_index.h"
#include "tests/support/recorded_steps.h"

namespace lockstep::replay {
namespace {

using lockstep::testing::message_of;
using ::testing::ElementsAre;

IndexEntry entry_of(int64_t step) {
  return {3, 4, digest("job"), step, step % 2 == 0, true, 8'123'456, digest("file"), step_file_name(3, step)};
}

/// `body` with a check that matches.
std::string checked(const std::string& body) { return body + " check " + digest(body).text(); }

std::string refusal_of(const std::string& line) {
  return message_of<FileError>([&] { parse_index_line(line); });
}

/// What is said of a line whose check matches, after one change to it.
std::string refusal_after(const std::string& from, const std::string& to) {
  const auto line = index_line(entry_of(120));
  auto body = line.substr(0, line.find(" check "));
  const auto place = body.find(from);
  EXPECT_NE(place, body.npos) << from;
  return refusal_of(checked(body.replace(place, from.size(), to)));
}

/// The line in FORMAT.md, with digests of 32 digits.
TEST(RecordingIndex, ALineIsAsFormatSays) {
  EXPECT_EQ(index_line(entry_of(120)), "lockstep-index 1 rank 3 of 4 job " + digest("job").text() +
                                           " step 120 state 1 complete 1 bytes 8123456 digest " +
                                           digest("file").text() +
                                           " file rank3-step120.h5 check bc00a8111c411bd016a12a3d2b53a081\n");
}

RC_GTEST_PROP(RecordingIndex, LinesReadBack, (uint64_t a, uint64_t b, bool state, bool complete)) {
  const auto rank = *rc::gen::inRange<int32_t>(0, 1 << 20);
  const auto step = *rc::gen::inRange<int64_t>(0, INT64_MAX);
  const auto times = *rc::gen::inRange<int64_t>(1, 1000);
  const IndexEntry entry{
      rank, rank + 1, {a, b}, step, state, complete, a >> 1, {b, a}, step_file_name(rank, step, times)};
  const auto line = index_line(entry);
  RC_ASSERT(parse_index_line(std::string_view(line).substr(0, line.size() - 1)) == entry);
}

TEST(RecordingIndex, EveryChangedByteIsNoticed) {
  const auto line = index_line(entry_of(120));
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    auto wrong = line.substr(0, line.size() - 1);
    wrong[i] = static_cast<char>(wrong[i] ^ 1);
    EXPECT_NE(refusal_of(wrong), "no such error") << wrong;
  }
}

TEST(RecordingIndex, WhatIsWrongWithALine) {
  EXPECT_EQ(refusal_of(""), "it has no check");
  EXPECT_EQ(refusal_of("lockstep-index 1 check 00000000000000000000000000000000"), "its check does not match");
  EXPECT_EQ(refusal_of("x check 123"), "'123' is no digest");
  EXPECT_EQ(refusal_of(checked("x")), "'lockstep-index ' is missing");
  EXPECT_EQ(refusal_after("index 1", "index 2"), "it was made by a newer Lockstep: version 2, this one reads 1");
  EXPECT_EQ(refusal_after("rank 3", "rank 4"), "rank 4 of 4");
  EXPECT_EQ(refusal_after("rank 3", "rank 03"), "'03' is no number, or too large");
  EXPECT_EQ(refusal_after("step 120", "step -1"), "'-1' is no number, or too large");
  EXPECT_EQ(refusal_after("step 120", "step 99999999999999999999"),
            "'99999999999999999999' is no number, or too large");
  EXPECT_EQ(refusal_after("state 1", "state 2"), "'2' is no number, or too large");
  EXPECT_EQ(refusal_after("rank3-step120.h5", "../rank3-step120.h5"), "'../rank3-step120.h5' is no name of its file");
  EXPECT_EQ(refusal_after("rank3-step120.h5", "rank3-step121.h5"), "'rank3-step121.h5' is no name of its file");
  EXPECT_EQ(refusal_after("rank3-step120.h5", "rank3-step120.1.h5"), "'rank3-step120.1.h5' is no name of its file");
  EXPECT_EQ(refusal_after("rank3-step120.h5", "rank3-step120.2.h5"), "no such error");
  EXPECT_EQ(refusal_after("rank3-step120.h5", "rank3-step120.h5 x"), "something stands behind the file's name");
}

TEST(RecordingIndex, DamageOfALineLeavesTheOthers) {
  auto other = entry_of(4);
  other.job = digest("another");
  auto rank = entry_of(5);
  rank.rank = 2;
  rank.file = step_file_name(2, 5);
  const auto text = index_line(entry_of(1)) + "scribble\n" + index_line(other) + index_line(rank) +
                    index_line(entry_of(6)) + "lockstep-index 1 ra";
  const auto index = parse_index(text, 3, "rank3.index");
  EXPECT_THAT(index.entries, ElementsAre(entry_of(1), entry_of(6)));
  EXPECT_THAT(
      index.damage,
      ElementsAre("rank3.index:2: a step is lost, its line is damaged: it has no check",
                  "rank3.index:3: a step is lost, its line is damaged: it is of another run than the lines before it",
                  "rank3.index:4: a step is lost, its line is damaged: it is of rank 2"));
  EXPECT_EQ(index.torn, 19U);
}

}  // namespace
}  // namespace lockstep::replay
