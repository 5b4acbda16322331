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

std::string toml_problem(const std::string& text) {
  try {
    parse_toml(text, "job.toml");
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

std::string repeated(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

TEST(Toml, DeepNestingIsRefusedBeforeItIsParsed) {
  constexpr int kDeep = 20'000;
  const std::string refusal = ": nested deeper than 16 levels; a job has sections and keys.";
  EXPECT_EQ(toml_problem(repeated("a.", kDeep) + "a = 1"), "job.toml:1" + refusal);
  EXPECT_EQ(toml_problem("\n[" + repeated("a.", kDeep) + "a]"), "job.toml:2" + refusal);
  EXPECT_EQ(toml_problem("\n[[" + repeated("\"a\" . ", kDeep) + "a]]"), "job.toml:2" + refusal);
  EXPECT_EQ(toml_problem("\n\na = " + repeated("[", kDeep)), "job.toml:3" + refusal);
  EXPECT_EQ(toml_problem("a = " + repeated("[\n", kDeep) + repeated("]", kDeep)), "job.toml:17" + refusal);
  EXPECT_EQ(toml_problem("a = " + repeated("{a = ", kDeep) + "1" + repeated("}", kDeep)), "job.toml:1" + refusal);
  EXPECT_EQ(toml_problem("# it's\na = " + repeated("{a.b.c = [", kDeep)), "job.toml:2" + refusal);
}

TEST(Toml, WhatIsNotStructureDoesNotNest) {
  const auto dots = repeated("a.", 100), brackets = repeated("[{", 100);
  EXPECT_EQ(toml_problem("a = \"" + dots + brackets + "\\\"" + brackets + "\""), "");
  EXPECT_EQ(toml_problem("a = '" + dots + brackets + "\\'\nb = 1"), "");
  EXPECT_EQ(toml_problem("a = \"\"\"\n" + dots + "\n\" \\\"\"\" " + brackets + "\"\"\""), "");
  EXPECT_EQ(toml_problem("a = '''\n" + dots + "\n' " + brackets + "'''"), "");
  EXPECT_EQ(toml_problem("# " + dots + brackets + "\na = 1"), "");
  EXPECT_EQ(toml_problem("a = [" + repeated("1.5, ", 100) + "]"), "");
  std::string tables;
  for (int i = 0; i < 100; ++i) tables += "[table" + std::to_string(i) + "]\na = [[1], {b = 2}]\n";
  EXPECT_EQ(toml_problem(tables), "");
}

}  // namespace
}  // namespace lockstep::trainer
