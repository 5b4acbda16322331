#include "trainer/metrics/step_metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_folder.h"

namespace lockstep::trainer {
namespace {

constexpr int64_t kMebibyte = 1 << 20;
constexpr StepMetrics kMetrics{.step = 17,
                               .loss = 3.14159,
                               .max_loss = 3.5,
                               .grad_norm = 1.25,
                               .learning_rate = 8e-4,
                               .tokens_per_second = 5120.4,
                               .operations_per_second = 3e10,
                               .peak_operations = 1.2e11,
                               .memory_bytes = 500 * kMebibyte,
                               .peak_memory_bytes = 512 * kMebibyte,
                               .parameter_bytes = 64 * kMebibyte,
                               .gradient_bytes = 32 * kMebibyte,
                               .optimizer_bytes = 128 * kMebibyte,
                               .step_seconds = 0.5,
                               .data_seconds = 0.125,
                               .communication_seconds = 0.0625,
                               .checkpoint_seconds = 0.03125,
                               .seconds = 62.4,
                               .seconds_left = 671};

/// What a run on a GPU, in one process, that nothing is known of has.
StepMetrics with_little_known() {
  auto metrics = kMetrics;
  metrics.max_loss.reset();
  metrics.peak_operations = 0;
  metrics.communication_seconds.reset();
  metrics.gpu = GpuMemory{};
  return metrics;
}

TEST(JsonLine, HasAllNumbersInOneOrder) {
  EXPECT_EQ(json_line(kMetrics),
            R"({"step":17,"loss":3.14159,"max_loss":3.5,"grad_norm":1.25,"learning_rate":0.0008,)"
            R"("tokens_per_second":5120.4,"checked_tokens_per_second":null,"teraflops":0.03,"mfu":0.25,)"
            R"("memory_bytes":524288000,"peak_memory_bytes":536870912,"parameter_bytes":67108864,)"
            R"("gradient_bytes":33554432,"optimizer_bytes":134217728,"other_bytes":301989888,"step_seconds":0.5,)"
            R"("data_seconds":0.125,"communication_seconds":0.0625,"checkpoint_seconds":0.03125,"seconds":62.4,)"
            R"("seconds_left":671})");
}

StepMetrics on_a_gpu() {
  auto metrics = kMetrics;
  metrics.gpu = GpuMemory{300 * kMebibyte, 768 * kMebibyte, 1024 * kMebibyte, 2};
  return metrics;
}

TEST(JsonLine, TellsWhatIsOnAGpuBesideWhatIsOnTheHost) {
  const auto json = nlohmann::json::parse(json_line(on_a_gpu()));
  EXPECT_EQ(json.at("peak_memory_bytes"), 512 * kMebibyte);
  EXPECT_EQ(json.at("gpu_memory_bytes"), 300 * kMebibyte);
  EXPECT_EQ(json.at("gpu_peak_memory_bytes"), 768 * kMebibyte);
  EXPECT_EQ(json.at("gpu_peak_reserved_bytes"), 1024 * kMebibyte);
  EXPECT_EQ(json.at("gpu_allocation_retries"), 2);
  EXPECT_EQ(json.at("other_bytes"), (768 - 64 - 32 - 128) * kMebibyte) << "of the GPU's peak";
  EXPECT_FALSE(nlohmann::json::parse(json_line(kMetrics)).contains("gpu_memory_bytes"));
}

TEST(JsonLine, ReadsBackToTheSameBits) {
  auto metrics = kMetrics;
  metrics.loss = 0.1 + 0.2;
  metrics.checked_tokens_per_second = 1480.25;
  const auto json = nlohmann::json::parse(json_line(metrics));
  EXPECT_EQ(json.at("loss").get<double>(), metrics.loss);
  EXPECT_EQ(json.at("checked_tokens_per_second"), 1480.25);
}

TEST(JsonLine, WhatIsNotKnownOrNotFiniteIsNull) {
  auto metrics = with_little_known();
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.grad_norm = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(json_line(metrics));
  for (const char* name :
       {"loss", "max_loss", "grad_norm", "checked_tokens_per_second", "mfu", "other_bytes", "communication_seconds"})
    EXPECT_TRUE(json.at(name).is_null()) << name;
}

std::vector<std::string> curves_of(const StepMetrics& metrics) {
  std::vector<std::string> all;
  for (const auto& [tag, value] : scalar_events(metrics)) all.push_back(fmt::format("{} {}", tag, value));
  return all;
}

TEST(ScalarEvents, AreTheNumbersOfAStep) {
  const std::vector<std::string> expected{"loss_metrics/global_avg_loss 3.14159",
                                          "loss_metrics/global_max_loss 3.5",
                                          "grad_norm 1.25",
                                          "lr 0.0008",
                                          "throughput(tps) 5120.4",
                                          "tflops 0.03",
                                          "mfu(%) 25",
                                          "time_metrics/end_to_end(s) 0.5",
                                          "time_metrics/data_loading(s) 0.125",
                                          "time_metrics/data_loading(%) 25",
                                          "time_metrics/communication(s) 0.0625",
                                          "time_metrics/checkpoint(s) 0.03125",
                                          "time_metrics/left(s) 671",
                                          "memory/resident(GiB) 0.48828125",
                                          "memory/peak_resident(GiB) 0.5",
                                          "memory/parameters(GiB) 0.0625",
                                          "memory/gradients(GiB) 0.03125",
                                          "memory/optimizer(GiB) 0.125",
                                          "memory/other(GiB) 0.28125"};
  EXPECT_EQ(curves_of(kMetrics), expected);
}

TEST(ScalarEvents, HaveAGpusMemory) {
  const auto curves = curves_of(on_a_gpu());
  for (const auto* curve :
       {"memory/max_allocated(GiB) 0.75", "memory/max_reserved(GiB) 1", "memory/num_alloc_retries 2"})
    EXPECT_EQ(std::ranges::count(curves, curve), 1) << curve;
}

TEST(ScalarEvents, LeaveOutWhatIsNotKnown) {
  auto metrics = with_little_known();
  metrics.peak_memory_bytes = 0;
  metrics.checked_tokens_per_second = 1480.5;
  const auto curves = curves_of(metrics);
  EXPECT_EQ(curves.size(), 14U) << "without the largest loss, use, communication, peak and other memory";
  EXPECT_EQ(curves[3], "throughput(tps) 1480.5");
}

TEST(StepMetrics, MemoryThatIsLeftIsNeverNegative) {
  auto metrics = kMetrics;
  metrics.optimizer_bytes = 600 * kMebibyte;
  EXPECT_EQ(metrics.other_bytes(), 0);
}

/// docs/metrics.md has a row for each.
TEST(StepMetrics, AreAllDocumented) {
  const auto page = file_content(LOCKSTEP_SOURCE_DIR "/docs/metrics.md");
  const auto json = nlohmann::json::parse(json_line(on_a_gpu()));
  for (const auto& [name, value] : json.items())
    EXPECT_NE(page.find("`" + name + "`"), page.npos) << name << " is not in docs/metrics.md";
  for (const auto& [tag, value] : scalar_events(on_a_gpu()))
    EXPECT_NE(page.find("`" + std::string(tag) + "`"), page.npos) << tag << " is not in docs/metrics.md";
}

}  // namespace
}  // namespace lockstep::trainer
