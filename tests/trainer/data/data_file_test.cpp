#include "trainer/data/data_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/digest/digest.h"
#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

TEST(DataDigest, IsOfLengthAndContent) {
  const TemporaryFolder folder;
  const auto path = folder.write("text", "the cat sat");
  EXPECT_EQ(data_digest(path), digest("11the cat sat").text());
  EXPECT_NE(data_digest(folder.write("other", "the cat sit")), data_digest(path));
  EXPECT_NE(data_digest(folder.write("empty", "")), data_digest(path));
  EXPECT_THROW(data_digest(folder.file("none")), BadInput);
}

/// Every byte of a file that is not large, and both ends of one that is.
TEST(DataDigest, SeesTheEndsOfLargeFiles) {
  const TemporaryFolder folder;
  const std::string megabyte(1 << 20, 'x');
  std::string text = megabyte + megabyte + "end";
  const auto path = folder.write("text", text);
  const auto before = data_digest(path);
  text[megabyte.size() + 5] = 'y';
  EXPECT_NE(data_digest(folder.write("text", text)), before);

  const auto large = folder.write("large", "begin");
  std::filesystem::resize_file(large, std::uintmax_t{1} << 40);
  const auto sparse = data_digest(large);
  folder.write("large", "Begin");
  std::filesystem::resize_file(large, std::uintmax_t{1} << 40);
  EXPECT_NE(data_digest(large), sparse);
  std::filesystem::resize_file(large, (std::uintmax_t{1} << 40) + 1);
  EXPECT_NE(data_digest(large), sparse);
}

}  // namespace
}  // namespace lockstep::trainer
