// Ranks as threads of this process: what all of them say of a step.
#include "trainer/measure/step_meter.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "fuzz/trials/streams.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/dispatch/backend.h"
#include "runtime/kernels/speed/machine_speed.h"
#include "trainer/launch/rank_texts.h"
#include "trainer/measure/device_speed.h"

namespace lockstep::trainer {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 3;

/// What each rank hears of a step in which rank 2 is late.
std::vector<StepMeasures> measures_of(const std::vector<std::vector<LocalLoss>>& losses) {
  register_backend();
  const auto transports = testing::connected_transports(kRanks, testing::StreamKind::kMemory, 10s);
  std::vector<std::future<StepMeasures>> ranks;
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      World world({.rank_count = kRanks, .local_ranks = {rank}, .transport = transports[static_cast<size_t>(rank)]});
      StepMeter meter(world.mesh("dp=3"));
      any_rank(world.mesh("dp=3"), false);  // they begin together
      meter.begin();
      if (rank == 2) std::this_thread::sleep_for(90ms);
      meter.have_batch();
      any_rank(world.mesh("dp=3"), false);
      return meter.end(losses[static_cast<size_t>(rank)]);
    }));
  std::vector<StepMeasures> all;
  for (auto& rank : ranks) all.push_back(rank.get());
  return all;
}

TEST(StepMeter, HasTheWorstOfAllRanksOnEach) {
  for (const auto& measures : measures_of({{{6, 3}}, {{10, 4}}, {{2, 4}}})) {
    EXPECT_EQ(measures.max_loss, 2.5);
    EXPECT_GE(measures.data_seconds, 0.09) << "rank 2's";
    EXPECT_LT(measures.data_seconds, 5);
    ASSERT_TRUE(measures.communication_seconds);
    EXPECT_GE(*measures.communication_seconds, 0.05) << "two of three waited for 0.09";
    EXPECT_LT(*measures.communication_seconds, 5);
    EXPECT_GT(measures.peak_operations, 1e8);
  }
}

/// A CPU is a device, too: what LibTorch reaches there is no other order of magnitude than what our own kernels do.
TEST(StepMeter, MeasuresProductsOfADevice) {
  const double own = kernels::product_speed(kernels::thread_workers(1));
  const double found = device_product_speed(c10::kCPU, c10::kFloat);
  EXPECT_GT(found, own / 20);
  EXPECT_LT(found, own * 20);
}

TEST(StepMeter, ARankWithoutTokensHasNoMean) {
  for (const auto& measures : measures_of({{{0, 0}}, {{1, 4}}, {}})) EXPECT_EQ(measures.max_loss, 0.25);
  for (const auto& measures : measures_of({{}, {{0, 0}}, {}})) EXPECT_FALSE(measures.max_loss);
}

TEST(StepMeter, OneProcessWaitsForNobody) {
  register_backend();
  World world({.rank_count = kRanks});
  StepMeter meter(world.mesh("dp=3"));
  meter.begin();
  const std::vector<LocalLoss> losses{{1, 1}, {3, 1}, {2, 1}};
  const auto measures = meter.end(losses);
  EXPECT_EQ(measures.max_loss, 3.0);
  EXPECT_FALSE(measures.communication_seconds);
}

}  // namespace
}  // namespace lockstep::trainer
