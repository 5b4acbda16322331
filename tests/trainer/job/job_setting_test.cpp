#include "trainer/job/job_setting.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

/// What a saved job could not be read back with.
TEST(CommandLineSetting, IsUtf8Text) {
  for (const char* text : {"", "plain", "\u00e9\u20ac\U0001f600\U0010ffff"})
    EXPECT_EQ(command_line_setting("job.description", text).written, text);
  for (const char* text :
       {"\xff", "a\x80", "\xc0\xaf", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"}) {
    try {
      command_line_setting("job.description", text);
      ADD_FAILURE() << text;
    } catch (const BadInput& error) {
      EXPECT_STREQ(error.what(), "command line: the value of job.description is not UTF-8 text.");
    }
  }
}

}  // namespace
}  // namespace lockstep::trainer
