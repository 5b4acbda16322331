#include "core/files/text_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// "0-3 ab b": begin, end, head and last byte of each line; "torn" if it has no newline.
std::vector<std::string> lines_of(const std::string& content) {
  const TemporaryFolder folder;
  std::vector<std::string> lines;
  for_each_line(RandomAccessFile(folder.write("f", content)), [&](const TextLine& line) {
    lines.push_back(std::to_string(line.range.begin) + "-" + std::to_string(line.range.end) + " " +
                    std::string(line.head) + " " + (line.last ? std::string(1, line.last) : "none") +
                    (line.is_whole ? "" : " torn"));
  });
  return lines;
}

TEST(TextLines, HaveAPlaceAHeadAndAnEnd) {
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("ab\n\ncd"), ElementsAre("0-3 ab b", "3-4  none", "4-6 cd d torn"));
  EXPECT_THAT(lines_of("\n"), ElementsAre("0-1  none"));
}

TEST(TextLines, MayBeLongerThanABlock) {
  const std::string head(TextLine::kMostHead, 'x');
  const auto lines = lines_of(std::string(2 << 20, 'x') + "y\nz\n");
  EXPECT_THAT(lines, ElementsAre("0-2097154 " + head + " y", "2097154-2097156 z z"));
}

TEST(TextLines, NewlinesAreFoundAtAnyPlaceOfABlock) {
  constexpr int kBlock = 1 << 20;
  for (const int at : {kBlock - 2, kBlock - 1, kBlock, kBlock + 1}) {
    const auto lines = lines_of(std::string(static_cast<size_t>(at), 'x') + "\nab\n");
    ASSERT_EQ(lines.size(), 2u) << at;
    EXPECT_EQ(lines[1], std::to_string(at + 1) + "-" + std::to_string(at + 4) + " ab b");
  }
}

TEST(KeepRanges, LeavesThoseParts) {
  const TemporaryFolder folder;
  const auto path = folder.write("f", "0123456789");
  const FileRange ranges[] = {{1, 2}, {2, 4}, {}, {5, 5}, {8, 10}, {0, 1}};
  keep_ranges(RandomAccessFile(path), ranges);
  EXPECT_EQ(file_content(path), "123890");
  keep_ranges(RandomAccessFile(path), {});
  EXPECT_EQ(file_content(path), "");
}

}  // namespace
}  // namespace lockstep
