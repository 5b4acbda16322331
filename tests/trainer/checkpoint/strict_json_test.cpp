#include "trainer/checkpoint/strict_json.h"

#include <gtest/gtest.h>

#include <chrono>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

std::string json_problem(const std::string& text) {
  const std::string path = "f";
  try {
    parse_strict_json(text, path);
    return "";
  } catch (const FileError& error) {
    return error.what();
  }
}

std::string nested(const std::string& open, const std::string& inside, const std::string& close, int levels) {
  std::string text;
  for (int i = 0; i < levels; ++i) text += open;
  text += inside;
  for (int i = 0; i < levels; ++i) text += close;
  return text;
}

TEST(StrictJson, HasADepth) {
  EXPECT_EQ(json_problem(nested("[", "1", "]", 16)), "");
  EXPECT_EQ(json_problem(nested("{\"a\":", "[]", "}", 15)), "");
  const auto* refusal = "f: damaged: JSON nested deeper than 16 levels.";
  EXPECT_EQ(json_problem(nested("[", "1", "]", 17)), refusal);
  EXPECT_EQ(json_problem(nested("{\"a\":", "[]", "}", 16)), refusal);
  EXPECT_EQ(json_problem(nested("[", "1", "]", 20'000)), refusal);
  EXPECT_EQ(json_problem(nested("{\"a\":", "1", "}", 20'000)), refusal);
  EXPECT_EQ(json_problem(nested("[", "", "", 20'000)), refusal) << "not closed";
}

TEST(StrictJson, HasEveryKeyOnce) {
  EXPECT_EQ(json_problem(R"({"a": 1, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}]})"), "");
  EXPECT_EQ(json_problem(R"({"a": 1, "b": {"a": 1}, "a": 2})"), "f: damaged: the key \"a\" occurs twice.");
  EXPECT_EQ(json_problem(R"({"a": 1, "\u0061": 2})"), "f: damaged: the key \"a\" occurs twice.");
}

TEST(StrictJson, SaysWhereItIsNoJson) {
  EXPECT_EQ(json_problem(""), "f: damaged: not valid JSON at byte 1.");
  EXPECT_EQ(json_problem("[1,]"), "f: damaged: not valid JSON at byte 4.");
  EXPECT_EQ(json_problem("[1] [2]"), "f: damaged: not valid JSON at byte 5.");
  EXPECT_EQ(json_problem("[1e999]"), "f: damaged: not valid JSON.");
}

TEST(StrictJson, ALongListTakesNoTime) {
  std::string text = "[{\"a\":1}";
  for (int i = 0; i < 100'000; ++i) text += ",{\"a\":1}";
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(json_problem(text + "]"), "");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds{2});
}

}  // namespace
}  // namespace lockstep::trainer
