// Files of golden bits: what they hold, what is said where bits differ, and what is never written over.
#include "tests/support/golden_lines.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_folder.h"

namespace lockstep::testing {
namespace {

constexpr const char* kSection = "kernels";

/// A file of version `kNumericsVersion` in a folder of its own.
class GoldenFile : public ::testing::Test {
 protected:
  std::string check(const GoldenLines& lines, bool write) const {
    return check_golden_file(path_, lines, kSection, write);
  }
  TemporaryFolder folder_;
  std::string path_ = folder_.path() + "/" + golden_file(kSection);
  std::string this_version_ = std::to_string(kNumericsVersion), next_version_ = std::to_string(kNumericsVersion + 1);
};

TEST_F(GoldenFile, IsWrittenAndReadBack) {
  const GoldenLines lines{{"products.mm.float32", "12ab"}, {"untied.step_1.loss", "0x1.8p+2"}};
  EXPECT_EQ(check(lines, true), "");
  EXPECT_EQ(parse_golden(file_content(path_)), lines);
  EXPECT_EQ(check(lines, false), "");
  EXPECT_EQ(check(lines, true), "");
}

TEST_F(GoldenFile, OfAVersionThatHasNoneMustBeWritten) {
  EXPECT_EQ(check({{"a", "1"}}, false),
            "tests/golden/numerics_v" + this_version_ +
                "_kernels.txt cannot be read: a new numerics version needs its golden bits; "
                "write them with 'make golden'");
}

TEST_F(GoldenFile, NamesEveryLineThatDiffersAndWhatToDo) {
  ASSERT_EQ(check({{"a", "1"}, {"b", "2"}, {"c", "3"}}, true), "");
  EXPECT_EQ(check({{"a", "1"}, {"b", "4"}, {"d", "5"}}, false),
            "golden bits of numerics version " + this_version_ + " differ in 3 lines of tests/golden/numerics_v" +
                this_version_ +
                "_kernels.txt:\n"
                "  b: 4, in the file 2\n"
                "  c: 3 in the file, computed by no test\n"
                "  d: 5, not in the file\n"
                "canonical bits changed: raise kNumericsVersion in core/numerics_version.h to " +
                next_version_ + " and write tests/golden/numerics_v" + next_version_ +
                "_*.txt with 'make golden' (docs/numerics.md). If they should not have, the change is wrong.");
}

TEST_F(GoldenFile, NewAndRemovedLinesNeedNoVersion) {
  ASSERT_EQ(check({{"a", "1"}, {"b", "2"}}, true), "");
  const GoldenLines other{{"a", "1"}, {"c", "3"}};
  const auto complaint = check(other, false);
  EXPECT_NE(complaint.find("differ in 2 lines"), std::string::npos) << complaint;
  EXPECT_NE(complaint.find("no bits changed: write the file with 'make golden'"), std::string::npos) << complaint;
  EXPECT_EQ(check(other, true), "");
  EXPECT_EQ(check(other, false), "");
}

TEST_F(GoldenFile, BitsAreNeverWrittenOver) {
  ASSERT_EQ(check({{"a", "1"}}, true), "");
  EXPECT_NE(check({{"a", "2"}, {"b", "3"}}, true).find("canonical bits changed: "), std::string::npos);
  EXPECT_EQ(parse_golden(file_content(path_)), (GoldenLines{{"a", "1"}}));
}

TEST(GoldenLines, AreTwoWordsAndNamedOnce) {
  EXPECT_EQ(parse_golden("# of version 1\n\na 1\nb 2\n"), (GoldenLines{{"a", "1"}, {"b", "2"}}));
  for (const char* text : {"a\n", "a 1 2\n", "a 1\na 1\n"})
    EXPECT_THROW(parse_golden(text), std::runtime_error) << text;
  GoldenLines lines{{"a", "1"}};
  EXPECT_THROW(add_line(lines, "a", "1"), std::logic_error);
}

}  // namespace
}  // namespace lockstep::testing
