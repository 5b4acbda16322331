#include "trainer/metrics/metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <vector>

#include "core/error.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

constexpr StepMetrics kMetrics{.step = 17,
                               .loss = 3.14159,
                               .grad_norm = 1.25,
                               .learning_rate = 8e-4,
                               .tokens_per_second = 5120.4,
                               .memory_bytes = int64_t{500} << 20,
                               .peak_memory_bytes = int64_t{512} << 20,
                               .seconds = 62.4};

StepMetrics checked_at(double speed) {
  auto metrics = kMetrics;
  metrics.checked_tokens_per_second = speed;
  return metrics;
}

TEST(LogLine, TellsEverythingInOneLine) {
  EXPECT_EQ(log_line(kMetrics, 200),
            "step  17/200  loss 3.1416  grad_norm 1.2500  lr 8.0e-04  5,120 tokens/s  512 MiB peak  1m02s");
}

TEST(LogLine, SaysThatTheSpeedIsThatWithTheCheck) {
  EXPECT_EQ(log_line(checked_at(1480.2), 200),
            "step  17/200  loss 3.1416  grad_norm 1.2500  lr 8.0e-04  1,480 tokens/s checked  512 MiB peak  1m02s");
}

TEST(LogLine, IsNoWiderThanATerminal) {
  EXPECT_EQ(log_line(checked_at(9999), 999).size(), 100U);
  EXPECT_EQ(log_line(kMetrics, 999).size(), 100U - std::string(" checked").size());
}

TEST(LogLine, HasTheGpusMemoryWhereThereIsOne) {
  auto metrics = kMetrics;
  metrics.gpu = GpuMemory{.peak_allocated_bytes = int64_t{700} << 20};
  EXPECT_NE(log_line(metrics, 20).find("  700 MiB GPU peak  "), std::string::npos) << log_line(metrics, 20);
  metrics.gpu = GpuMemory{};
  EXPECT_NE(log_line(metrics, 20).find("  512 MiB peak  "), std::string::npos) << log_line(metrics, 20);
}

TEST(LogLine, SaysWhetherMemoryIsThePeak) {
  auto metrics = kMetrics;
  metrics.peak_memory_bytes = 0;
  EXPECT_NE(log_line(metrics, 20).find("  500 MiB now  "), std::string::npos) << log_line(metrics, 20);
}

TEST(LogLine, GroupsDigits) {
  auto metrics = kMetrics;
  for (const auto& [speed, text] :
       {std::pair{7.0, " 7 tokens"}, {123.0, " 123 tokens"}, {1234567.0, " 1,234,567 tokens"}}) {
    metrics.tokens_per_second = speed;
    EXPECT_NE(log_line(metrics, 20).find(text), std::string::npos) << log_line(metrics, 20);
  }
}

TEST(DurationText, UsesTwoUnits) {
  EXPECT_EQ(duration_text(0.4), "0s");
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(3599), "59m59s");
  EXPECT_EQ(duration_text(3600 * 27 + 125), "27h02m");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
}

class MetricsFiles : public ::testing::Test {
 protected:
  static std::string line(int64_t step, double loss = 1) {
    auto metrics = kMetrics;
    metrics.step = step;
    metrics.loss = loss;
    return json_line(metrics) + "\n";
  }
  static std::string lines(int64_t first, int64_t last) {
    std::string text;
    for (auto step = first; step <= last; ++step) text += line(step);
    return text;
  }
  /// What a run that goes on with `first_step` makes of a file of this content.
  std::string left(const std::string& content, int64_t first_step) const {
    folder_.write("metrics.jsonl", content);
    const MetricsFile file(path(), first_step);
    return file_content(path());
  }
  std::string path() const { return folder_.file("metrics.jsonl"); }

  TemporaryFolder folder_;
};

TEST_F(MetricsFiles, AppendsLines) {
  MetricsFile file(path(), 1);
  file.append(kMetrics);
  file.append(kMetrics);
  EXPECT_EQ(file_content(path()), json_line(kMetrics) + "\n" + json_line(kMetrics) + "\n");
}

TEST_F(MetricsFiles, ARunThatBeginsAnewLosesNothing) {
  for (const auto* content : {"of the first\n", "of the second", ""}) {
    folder_.write("metrics.jsonl", content);
    MetricsFile(path(), 1).append(kMetrics);
    EXPECT_EQ(file_content(path()), json_line(kMetrics) + "\n");
  }
  EXPECT_EQ(file_content(folder_.file("metrics-1.jsonl")), "of the first\n");
  EXPECT_EQ(file_content(folder_.file("metrics-2.jsonl")), "of the second");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("metrics-3.jsonl"))) << "there was nothing to keep";
}

TEST_F(MetricsFiles, ARunThatGoesOnHasEachStepOnce) {
  folder_.write("metrics.jsonl", lines(1, 7) + line(8).substr(0, 40));
  MetricsFile file(path(), 6);
  EXPECT_EQ(file_content(path()), lines(1, 5));
  auto metrics = kMetrics;
  metrics.step = 6;
  file.append(metrics);
  EXPECT_EQ(file_content(path()), lines(1, 5) + json_line(metrics) + "\n");
}

TEST_F(MetricsFiles, GoingOnWhereTheLastRunEndedRewritesNothing) {
  folder_.write("metrics.jsonl", lines(1, 5));
  std::filesystem::create_hard_link(path(), folder_.file("same"));
  { const MetricsFile file(path(), 6); }
  EXPECT_TRUE(std::filesystem::equivalent(path(), folder_.file("same")));
  EXPECT_EQ(file_content(path()), lines(1, 5));
}

TEST_F(MetricsFiles, GoingOnWithoutAFileBeginsOne) {
  EXPECT_EQ(left("", 6), "");
  std::filesystem::remove(path());
  MetricsFile(path(), 6).append(kMetrics);
  EXPECT_EQ(file_content(path()), json_line(kMetrics) + "\n");
}

TEST_F(MetricsFiles, OfAStepThatIsThereTwiceTheLastLineStays) {
  EXPECT_EQ(left(lines(1, 9) + line(6, 2) + line(7, 2), 9), lines(1, 5) + line(6, 2) + line(7, 2));
  EXPECT_EQ(left(lines(1, 4) + lines(2, 3) + lines(1, 2), 9), lines(1, 2));
}

TEST_F(MetricsFiles, LinesOfOthersStay) {
  const std::string others[] = {"\n",
                                "# a note\n",
                                "{}\n",
                                "{\"step\":9\n",
                                "{\"step\":9}\n",
                                "{\"step\":,\"loss\":1}\n",
                                "{\"step\":99999999999999999999,\"loss\":1}\n",
                                "{\"loss\":1,\"step\":9}\n",
                                line(9).substr(0, 30) + "\n",
                                std::string(100, '\0') + "\n"};
  const auto joined = [](std::initializer_list<std::string> parts) {
    std::string all;
    for (const auto& part : parts) all += part;
    return all;
  };
  for (const auto& other : others) {
    const auto content = joined({other, other, lines(1, 6), other, lines(7, 9), other});
    EXPECT_EQ(left(content, 7), joined({other, other, lines(1, 6), other, other}));
    EXPECT_EQ(left(content + lines(4, 5), 7), joined({other, other, lines(1, 3), other, other, lines(4, 5)}));
  }
}

TEST_F(MetricsFiles, LinesAreFoundAcrossBlocks) {
  const auto content = std::string(3 << 20, 'x') + "\n" + lines(1, 20'000);  // a block is of 1 MiB
  EXPECT_TRUE(left(content + lines(20'001, 25'000), 20'001) == content);
  EXPECT_TRUE(left(content + std::string(2 << 20, 'x'), 30'000) == content) << "a last line without an end";
}

TEST_F(MetricsFiles, FailsWhereItCannotWrite) {
  for (const auto first_step : {1, 5}) {
    EXPECT_THROW(MetricsFile("/nonexistent/metrics.jsonl", first_step), FileError);
    MetricsFile full("/dev/full", first_step);
    EXPECT_THROW(full.append(kMetrics), FileError);
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST(ResidentBytes, IsPlausible) {
  EXPECT_GT(resident_bytes(), 1 << 20);
  EXPECT_LT(resident_bytes(), int64_t{1} << 40);
}

TEST(ResidentBytes, HaveAPeakThatStays) {
  constexpr size_t kBytes = size_t{64} << 20;
  const auto before = resident_bytes();
  {
    const std::vector<char> memory(kBytes, 1);
    asm volatile("" : : "r"(memory.data()) : "memory");  // somebody reads it: without that Clang allocates nothing
  }
  EXPECT_GE(peak_resident_bytes(), before + static_cast<int64_t>(kBytes) / 2) << "pages are counted late";
  EXPECT_LT(peak_resident_bytes(), int64_t{1} << 40);
}

/// Seconds are added up, not speeds: 1 and 2 seconds for two steps of 100 tokens.
TEST(CheckedSpeed, IsOfAllStepsThatWereChecked) {
  auto slow = checked_at(25), fast = checked_at(50);
  slow.tokens_per_second = 50, fast.tokens_per_second = 100;
  const auto speed = checked_speed(std::vector{slow, kMetrics, fast});
  ASSERT_TRUE(speed);
  EXPECT_DOUBLE_EQ(speed->alone, 200.0 / 3);
  EXPECT_DOUBLE_EQ(speed->checked, 200.0 / 6);
  EXPECT_EQ(speed_line(*speed), "speed     67 tokens/s on the mesh alone, 33 with one device beside it");
  EXPECT_FALSE(checked_speed(std::vector{kMetrics}));
  EXPECT_FALSE(checked_speed({}));
}

TEST(ProgressBar, ShowsShareAndTimeLeft) {
  EXPECT_EQ(ProgressBar::text(0, 10, std::numeric_limits<double>::infinity()),
            "[------------------------] 0%  0/10  ? left");
  EXPECT_EQ(ProgressBar::text(5, 10, 62), "[############------------] 50%  5/10  1m02s left");
  EXPECT_EQ(ProgressBar::text(10, 10, 0), "[########################] 100%  10/10  0s left");
}

TEST(ProgressBar, DrawsInPlaceAndClearsWhatItDrew) {
  std::string screen;
  ProgressBar bar(10, [&](std::string_view text) { screen += text; });
  bar.clear();
  EXPECT_EQ(screen, "") << "nothing was drawn yet";
  bar.update(1, 5);
  EXPECT_EQ(screen.find("\r\033[K["), 0U);
  const auto drawn = screen.size();
  bar.update(2, 5);
  EXPECT_EQ(screen.size(), drawn) << "at most ten times a second";
  bar.update(10, 5);
  EXPECT_GT(screen.size(), drawn) << "the end is always drawn";
  bar.clear();
  EXPECT_TRUE(screen.ends_with("\r\033[K"));
}

}  // namespace
}  // namespace lockstep::trainer
