#include "trainer/job/metrics.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

constexpr StepMetrics kMetrics{17, 3.14159, 1.25, 8e-4, 5120.4, int64_t{512} << 20, 62.4};

TEST(LogLine, TellsEverythingInOneLine) {
  EXPECT_EQ(log_line(kMetrics, 200),
            "step  17/200  loss  3.1416  grad_norm   1.2500  lr 8.00e-04  5,120 tokens/s  512 MiB  1m02s");
}

TEST(LogLine, GroupsDigits) {
  auto metrics = kMetrics;
  for (const auto& [speed, text] :
       {std::pair{7.0, " 7 tokens"}, {123.0, " 123 tokens"}, {1234567.0, " 1,234,567 tokens"}}) {
    metrics.tokens_per_second = speed;
    EXPECT_NE(log_line(metrics, 20).find(text), std::string::npos) << log_line(metrics, 20);
  }
}

TEST(JsonLine, ReadsBackToTheSameBits) {
  auto metrics = kMetrics;
  metrics.loss = 0.1 + 0.2;
  const auto json = nlohmann::json::parse(json_line(metrics));
  EXPECT_EQ(json.at("step"), 17);
  EXPECT_EQ(json.at("loss").get<double>(), metrics.loss);
  EXPECT_EQ(json.at("memory_bytes"), int64_t{512} << 20);
  EXPECT_EQ(json.size(), 7U);
}

TEST(JsonLine, NumbersThatAreNotFiniteAreNull) {
  auto metrics = kMetrics;
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.grad_norm = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(json_line(metrics));
  EXPECT_TRUE(json.at("loss").is_null());
  EXPECT_TRUE(json.at("grad_norm").is_null());
}

TEST(DurationText, UsesTwoUnits) {
  EXPECT_EQ(duration_text(0.4), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(3599), "59m59s");
  EXPECT_EQ(duration_text(3600 * 27 + 125), "27h02m");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

TEST(MetricsFile, AppendsLines) {
  const TemporaryFolder folder;
  const auto path = folder.write("metrics.jsonl", "{}\n");
  MetricsFile(path).append(kMetrics);
  MetricsFile(path).append(kMetrics);
  EXPECT_EQ(file_content(path), "{}\n" + json_line(kMetrics) + "\n" + json_line(kMetrics) + "\n");
}

TEST(MetricsFile, FailsWhereItCannotWrite) {
  EXPECT_THROW(MetricsFile("/nonexistent/metrics.jsonl"), FileError);
  MetricsFile full("/dev/full");
  EXPECT_THROW(full.append(kMetrics), FileError);
}

TEST(ResidentBytes, IsPlausible) {
  EXPECT_GT(resident_bytes(), 1 << 20);
  EXPECT_LT(resident_bytes(), int64_t{1} << 40);
}

TEST(ProgressBar, ShowsShareAndTimeLeft) {
  EXPECT_EQ(ProgressBar::text(0, 10, 3), "[------------------------] 0%  0/10  ? left");
  EXPECT_EQ(ProgressBar::text(5, 10, 62), "[############------------] 50%  5/10  1m02s left");
  EXPECT_EQ(ProgressBar::text(10, 10, 62), "[########################] 100%  10/10  0s left");
}

TEST(ProgressBar, DrawsInPlaceAndClearsWhatItDrew) {
  std::string screen;
  ProgressBar bar(10, [&](std::string_view text) { screen += text; });
  bar.clear();
  EXPECT_EQ(screen, "") << "nothing was drawn yet";
  bar.update(1);
  EXPECT_EQ(screen.find("\r\033[K["), 0U);
  const auto drawn = screen.size();
  bar.update(2);
  EXPECT_EQ(screen.size(), drawn) << "at most ten times a second";
  bar.update(10);
  EXPECT_GT(screen.size(), drawn) << "the end is always drawn";
  bar.clear();
  EXPECT_TRUE(screen.ends_with("\r\033[K"));
}

}  // namespace
}  // namespace lockstep::trainer
