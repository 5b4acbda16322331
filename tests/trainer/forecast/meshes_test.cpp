#include "trainer/forecast/meshes.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "core/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::trainer::forecast {
namespace {

using ::testing::HasSubstr;

/// 14 layers, so that 16 stages are even.
const ModelSizes kModel = sizes_of(models::LlamaOptions{1024, 14, 16, 8, 4096, 32000});
const Workload kWorkload{kModel, 4096, 64};

TimeForecast time_on(const char* mesh, int64_t stages = 1, Recompute recompute = Recompute::kNone) {
  return time_of(kWorkload, {parse_mesh(mesh), 1, recompute, stages}, hardware_of("h100"));
}

TEST(Forecast, OneRankHasNothingToSend) {
  const auto time = time_on("one device");
  EXPECT_EQ(time.tensor + time.context + time.transfers + time.bubble + time.data, 0);
  EXPECT_GT(time.computing, 0);
  EXPECT_GT(time.optimizer, 0);
}

TEST(Forecast, TheBubbleIsThatOfTheSchedule) {
  const auto plain = time_on("pp=16"), interleaved = time_on("pp=8", 2);
  const auto busy = [](const TimeForecast& t) { return t.computing + t.transfers; };
  EXPECT_DOUBLE_EQ(plain.bubble, busy(plain) * 15 / 64);
  EXPECT_DOUBLE_EQ(interleaved.bubble, busy(interleaved) * 7 / 2 / 64);
  EXPECT_DOUBLE_EQ(interleaved.transfers, 2 * time_on("pp=8").transfers);
}

TEST(Forecast, UnevenStagesWaitForTheLargest) {
  EXPECT_GT(time_on("pp=5").computing * 5, 1.2 * time_on("pp=4").computing * 4) << "16 units over 5 stages: 4 at most";
}

TEST(Forecast, WhatIsRunAgainTakesTimeAndSparesMemory) {
  double seconds = 0, bytes = 1e300;
  for (const auto recompute : kAllRecomputes) {
    const auto time = time_on("dp_shard=8", 1, recompute).computing;
    const auto memory = memory_of(kWorkload, {parse_mesh("dp_shard=8"), 8, recompute}).peak;
    EXPECT_GT(time, seconds) << text_of(recompute);
    EXPECT_LT(memory, bytes) << text_of(recompute);
    seconds = time, bytes = memory;
  }
}

TEST(Forecast, ABetweenHostsLinkIsSlower) {
  auto hardware = hardware_of("h100");
  hardware.host_latency_seconds = hardware.network_latency_seconds = 0;
  const Settings settings{parse_mesh("tp=8"), 1};
  const double inside = time_of(kWorkload, settings, hardware).tensor;
  hardware.ranks_per_host = 4;
  EXPECT_NEAR(time_of(kWorkload, settings, hardware).tensor / inside, 450.0 / (50 * 4), 1e-9) << "four ports carry it";
}

TEST(Forecast, EveryDegreeThatDividesIsThereOnce) {
  const auto all = all_meshes(kWorkload, 16, hardware_of("h100"), {});
  std::set<std::string> texts;
  for (const auto& mesh : all) {
    EXPECT_EQ(mesh.settings.mesh.ranks(), 16);
    EXPECT_EQ(mesh.fits, mesh.why.empty()) << mesh.settings.mesh.text();
    texts.insert(mesh.settings.mesh.text());
  }
  EXPECT_EQ(all.size(), 70U) << "4 twos over 5 axes";
  EXPECT_EQ(texts.size(), all.size());
  for (size_t i = 1; i < all.size() && all[i].fits; ++i) EXPECT_LE(all[i - 1].time.step(), all[i].time.step());
}

TEST(Forecast, ASequenceOfAnyLengthIsCutByNothing) {
  EXPECT_TRUE(forecast_of({kModel, 4095, 64}, parse_mesh("dp_shard=8"), hardware_of("h100"), {}).fits);
}

TEST(Forecast, TooManyMeshesAreRefusedAtOnce) {
  EXPECT_EQ(lockstep::testing::message_of<BadInput>([] { all_meshes(kWorkload, 14414400, hardware_of("h100"), {}); }),
            "14414400 ranks make 5906250 meshes, 200000 at most are looked at; choose a number with fewer divisors.");
}

/// Gathered keys and values, the largest stage's layers and table.
TEST(Forecast, MemoryIsThatOfTheFullestRank) {
  const auto peak = [](const char* mesh, int64_t length) {
    return memory_of({kModel, length, 64}, {parse_mesh(mesh), 1, Recompute::kNone});
  };
  const double keys = 2.0 * 2 * 8 * 64 * 4096 * 14;
  EXPECT_DOUBLE_EQ(peak("cp=4", 4096).activations, peak("one device", 1024).activations + keys);
  const double layer = dense_layer(kModel).parameters();
  EXPECT_DOUBLE_EQ(peak("pp=5", 4096).state, 12 * std::max(4 * layer, 3 * layer + kModel.table_parameters()));
}

TEST(Forecast, SaysWhyAMeshCannotBe) {
  const auto why = [](const char* mesh, const Choice& choice = {}) {
    return forecast_of(kWorkload, parse_mesh(mesh), hardware_of("h100"), choice).why;
  };
  EXPECT_EQ(why("dp_shard=4,tp=2"), "");
  EXPECT_EQ(why("tp=16"), "tp is more than the 8 ranks of a host");
  EXPECT_EQ(why("tp=3"), "tp does not divide 8 key-value heads");
  EXPECT_EQ(why("pp=17"), "pp is more than 14 layers, embedding and head");
  EXPECT_EQ(why("cp=3"), "cp x tp does not cut 4096 tokens, with cp their halves, evenly");
  EXPECT_EQ(why("dp_shard=128"), "dp_replicate x dp_shard does not divide 64 sequences");
  EXPECT_EQ(why("dp_shard=4", {.local_batch = 5}),
            "16 sequences of a rank make no microbatches of 5 that 1 stages a rank can take in turns");
  for (const auto& [mesh, stages] : {std::pair{"pp=4", 5}, {"dp_shard=8", 2}, {"pp=3", 2}})
    EXPECT_THAT(why(mesh, {.local_batch = {}, .recompute = {}, .stages_per_rank = stages}),
                HasSubstr(fmt::format("that {} stages a rank can take in turns", stages)))
        << mesh;
  auto small = hardware_of("h100");
  small.memory_bytes = 1e9;
  EXPECT_EQ(forecast_of(kWorkload, parse_mesh("dp_shard=2"), small, {}).why, "3.1 GiB, of 0.9 usable ones");
}

class HardwareFile : public ::testing::Test {
 protected:
  std::string problem(const std::string& text) {
    const auto path = folder_.file("gpu.toml");
    std::ofstream(path) << text;
    auto message = lockstep::testing::message_of<BadInput>([&] { hardware_of(path); });
    if (const auto at = message.find(path); at != message.npos) message.replace(at, path.size(), "FILE");
    return message;
  }
  TemporaryFolder folder_;
};

constexpr const char* kWhole =
    "memory_bytes = 80e9\noperations_per_second = 1e15\nmemory_bytes_per_second = 3e12\n"
    "host_bytes_per_second = 4e11\nnetwork_bytes_per_second = 5e10\n";

TEST_F(HardwareFile, IsRead) {
  const auto path = folder_.file("gpu.toml");
  std::ofstream(path) << kWhole << "ranks_per_host = 4\nproducts = 0.5\n";
  const auto hardware = hardware_of(path);
  EXPECT_EQ(hardware.memory_bytes, 80e9);
  EXPECT_EQ(hardware.ranks_per_host, 4);
  EXPECT_EQ(hardware.products, 0.5);
  EXPECT_EQ(hardware.attention, 0.18) << "as it is without";
  auto odd = hardware;
  odd.products = 0.1 + 0.2, odd.host_latency_seconds = 1e-7 / 3;
  std::ofstream(path) << to_toml(odd);
  EXPECT_EQ(hardware_of(path).products, odd.products);
  EXPECT_EQ(hardware_of(path).host_latency_seconds, odd.host_latency_seconds);
  EXPECT_EQ(hardware_of(path).memory_bytes, hardware.memory_bytes);
  EXPECT_EQ(hardware_of(path).ranks_per_host, 4);
}

TEST_F(HardwareFile, ThatIsWrongIsNamed) {
  const std::string whole = kWhole;
  EXPECT_EQ(problem(whole + "product = 1\n").substr(0, 45), "FILE: product is no field of hardware. There ");
  EXPECT_EQ(problem(whole + "products = 1.5\n"), "FILE: products must be a number from 0.001 to 1.");
  EXPECT_EQ(problem(whole + "links = \"fast\"\n"), "FILE: links must be a number from 0.001 to 1.");
  EXPECT_EQ(problem(whole + "ranks_per_host = 0.5\n"),
            "FILE: ranks_per_host must be a whole number from 1 to 1048576.");
  EXPECT_EQ(problem("ranks_at_full_speed = -1\n"), "FILE: ranks_at_full_speed must be a number from 0 to 1048576.");
  EXPECT_EQ(problem("host_latency_seconds = 2\n"), "FILE: host_latency_seconds must be a number from 0 to 1.");
  EXPECT_EQ(problem("memory_bytes = nan\n"), "FILE: memory_bytes must be a number from 1 to 1e+21.");
  EXPECT_EQ(problem("memory_bytes = 1\n"), "FILE: operations_per_second is missing.");
  EXPECT_THAT(problem("memory_bytes = \n"), HasSubstr("FILE:1: "));
  EXPECT_EQ(lockstep::testing::message_of<BadInput>([] { hardware_of("h99"); }),
            "--hardware h99 is neither one of a100, h100, h200 nor a file.");
}

}  // namespace
}  // namespace lockstep::trainer::forecast
