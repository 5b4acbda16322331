// What forecasts are fitted to: shares of computing, latencies, ranks that take turns, what is computed in.
#include "trainer/forecast/fit.h"

#include <gtest/gtest.h>

#include "trainer/forecast/memory.h"

namespace lockstep::trainer::forecast {
namespace {

const ModelSizes kModel = sizes_of(models::LlamaOptions{1024, 14, 16, 8, 4096, 32000});
const Workload kWorkload{kModel, 4096, 64};

MeasuredStep step(const models::LlamaOptions& options, int64_t rows, int64_t length, const Hardware& hardware) {
  const Workload workload{sizes_of(options), length, rows};
  const Settings settings{{}, rows, Recompute::kNone, 1, 4};
  return {workload, settings, time_of(workload, settings, hardware).step()};
}

TEST(ForecastFit, FindsTheSharesThatMadeTheSteps) {
  auto truth = hardware_of("a100");
  truth.products = 0.83, truth.attention = 0.31, truth.elements = 4.2;
  const std::array<MeasuredStep, 3> steps{step({}, 64, 32, truth), step({}, 2, 1024, truth),
                                          step({.width = 768, .hidden = 2304}, 16, 32, truth)};
  const auto found = fitted(hardware_of("a100"), steps);
  EXPECT_NEAR(found.products, truth.products, 1e-6);
  EXPECT_NEAR(found.attention, truth.attention, 1e-6);
  EXPECT_NEAR(found.elements, truth.elements, 1e-6);
  auto faster = hardware_of("a100");
  faster.operations_per_second /= 4;  // products reach 3.32 of it
  const auto scaled = fitted(faster, steps);
  EXPECT_NEAR(scaled.products, 1, 1e-6);
  EXPECT_NEAR(scaled.operations_per_second / (truth.operations_per_second * truth.products), 1, 1e-6);
  EXPECT_NEAR(time_of(steps[2].workload, steps[2].settings, scaled).step() / steps[2].seconds, 1, 1e-6);
  auto slow = steps;
  slow[1].seconds *= 1e6;
  EXPECT_EQ(fitted(hardware_of("a100"), slow).attention, kLeastShare) << "as far as shares go";
}

TEST(ForecastFit, ACollectiveWaitsForEachDoublingOfItsRanks) {
  auto hardware = hardware_of("h100");
  const auto seconds = [&](const char* mesh) { return time_of(kWorkload, {parse_mesh(mesh)}, hardware).tensor; };
  hardware.host_latency_seconds = 0;
  const double two = seconds("tp=2"), eight = seconds("tp=8");
  hardware.host_latency_seconds = 1e-3;
  const double collectives = 8 * 14 * 64;
  EXPECT_NEAR(seconds("tp=2") - two, collectives * 1e-3, 1e-9);
  EXPECT_NEAR(seconds("tp=8") - eight, collectives * 3e-3, 1e-9);
  hardware.ranks_per_host = 1, hardware.network_latency_seconds = 2e-3;
  const double apart = seconds("tp=2");
  hardware.network_latency_seconds = 0;
  EXPECT_NEAR(apart - seconds("tp=2"), collectives * 2e-3, 1e-9);
}

TEST(ForecastFit, RanksBeyondCoresTakeTurns) {
  auto hardware = hardware_of("h100");
  const auto computing = [&](const char* mesh) { return time_of(kWorkload, {parse_mesh(mesh)}, hardware).computing; };
  const double two = computing("dp_shard=2"), eight = computing("dp_shard=8"), hosts = computing("dp_shard=16");
  hardware.ranks_at_full_speed = 2;
  EXPECT_DOUBLE_EQ(computing("dp_shard=2"), two);
  EXPECT_DOUBLE_EQ(computing("dp_shard=8"), 4 * eight);
  EXPECT_DOUBLE_EQ(computing("dp_shard=16"), 4 * hosts) << "eight of them on a host";
}

TEST(ForecastFit, Float32IsTwiceAsManyBytes) {
  auto hardware = hardware_of("h100");
  hardware.host_latency_seconds = hardware.network_latency_seconds = 0;
  const Settings half{parse_mesh("tp=4")}, whole{parse_mesh("tp=4"), 1, Recompute::kNone, 1, 4};
  EXPECT_DOUBLE_EQ(time_of(kWorkload, whole, hardware).tensor, 2 * time_of(kWorkload, half, hardware).tensor);
  const auto of_half = memory_of(kWorkload, half), of_whole = memory_of(kWorkload, whole);
  EXPECT_DOUBLE_EQ(of_whole.activations, 2 * of_half.activations);
  EXPECT_DOUBLE_EQ(of_whole.logits, 2 * of_half.logits);
  EXPECT_DOUBLE_EQ(of_whole.state, of_half.state);
}

}  // namespace
}  // namespace lockstep::trainer::forecast
