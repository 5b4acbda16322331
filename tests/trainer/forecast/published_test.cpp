// Forecasts beside runs: Lockstep's own on one GPU, to which they are fitted, and published ones, to which they are
// not. docs/scale.md has the table.
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/families/llama.h"
#include "models/families/moe.h"
#include "trainer/forecast/meshes.h"

namespace lockstep::trainer::forecast {
namespace {

struct Published {
  const char *flavor, *mesh, *hardware;
  int64_t seq_len, global_batch, local_batch;
  Recompute recompute;
  int64_t stages_per_rank;
  double measured;  ///< tokens a second of a rank, or MFU in percent
  double within;
};

MeshForecast forecast_of(const Published& run, const Hardware& hardware) {
  const Workload workload{sizes_of(models::llama_flavor(run.flavor)), run.seq_len, run.global_batch};
  return forecast::forecast_of(workload, parse_mesh(run.mesh), hardware,
                               {run.local_batch, run.recompute, run.stages_per_rank});
}

double tokens_of_a_rank(const Published& run, const MeshForecast& forecast) {
  return static_cast<double>(run.global_batch * run.seq_len) / forecast.time.step() /
         static_cast<double>(forecast.settings.mesh.ranks());
}

/// docs/gpu.md, one H200.
TEST(Forecast, IsWhatOneGpuDoes) {
  for (const auto& run : {Published{"1B", "one device", "h200", 2048, 4, 4, Recompute::kNone, 1, 58418, 0.01},
                          Published{"3B", "one device", "h200", 2048, 4, 4, Recompute::kNone, 1, 23305, 0.01},
                          Published{"8B", "one device", "h200", 2048, 4, 4, Recompute::kLinear, 1, 10494, 0.01},
                          Published{"1B", "one device", "h200", 8192, 1, 1, Recompute::kNone, 1, 40003, 0.01}}) {
    const auto forecast = forecast_of(run, hardware_of(run.hardware));
    EXPECT_NEAR(tokens_of_a_rank(run, forecast) / run.measured, 1, run.within) << run.flavor << " " << run.seq_len;
  }
}

/// A. Grattafiori et al., "The Llama 3 herd of models", 2024, table 4: BF16 MFU.
TEST(Forecast, OfLlama3OnThousandsOfGpus) {
  for (const auto& run :
       {Published{"405B", "pp=16,dp_shard=64,tp=8", "h100", 8192, 2048, 1, Recompute::kNone, 8, 43, 0.15},
        Published{"405B", "pp=16,dp_shard=128,tp=8", "h100", 8192, 2048, 1, Recompute::kNone, 8, 41, 0.15},
        Published{"405B", "pp=16,dp_shard=8,cp=16,tp=8", "h100", 131072, 128, 1, Recompute::kNone, 8, 38, 0.15}}) {
    const auto forecast = forecast_of(run, hardware_of(run.hardware));
    EXPECT_NEAR(100 * forecast.mfu / run.measured, 1, run.within) << run.mesh;
    RecordProperty(run.mesh, std::to_string(100 * forecast.mfu));
  }
}

/// torchtitan's benchmarks/llama3_h100_202412_torchtitan.md, tables 1 and 3, with torch.compile and without float8.
TEST(Forecast, OfTorchtitanOn8And128Gpus) {
  auto hardware = hardware_of("h100");
  hardware.memory_bytes = 96e9, hardware.memory_bytes_per_second = 2.4e12;
  for (const auto& run : {Published{"8B", "dp_shard=8", "", 8192, 16, 2, Recompute::kOp, 1, 6667, 0.15},
                          Published{"8B", "dp_shard=128", "", 8192, 256, 2, Recompute::kOp, 1, 6514, 0.15}}) {
    const auto forecast = forecast_of(run, hardware);
    EXPECT_NEAR(tokens_of_a_rank(run, forecast) / run.measured, 1, run.within) << run.mesh;
    const double gibibytes = forecast.settings.mesh.dp_shard == 8 ? 77.0 : 62.0;
    EXPECT_NEAR(forecast.memory.peak / (1 << 30) / gibibytes, 1, 0.15) << run.mesh;
    RecordProperty(run.mesh, std::to_string(tokens_of_a_rank(run, forecast)));
  }
}

/// Megatron Bridge's performance summary of NeMo 25.11, in bfloat16, without its module for second tokens; what runs
/// again is not said: nothing here. GPUs by their data sheets, hosts of 64 with NVLink.
TEST(Forecast, OfMixturesOnHostsOf64) {
  const Hardware gb200{"gb200", 186e9, 2.5e15, 8e12, 64, 900e9, 50e9},
      gb300{"gb300", 279e9, 2.5e15, 8e12, 64, 900e9, 100e9};
  struct Run {
    const char *flavor, *mesh;
    const Hardware& hardware;
    int64_t global_batch, local_batch, stages_per_rank;
    double measured, within;
  };
  for (const auto& run : {Run{"deepseek-v3-671B", "pp=4,dp_shard=64,ep=64", gb200, 4096, 1, 4, 3139, 0.15},
                          Run{"deepseek-v3-671B", "pp=2,dp_shard=128,ep=32", gb300, 4096, 1, 4, 3848, 0.15},
                          Run{"qwen3-235B-A22B", "pp=8,dp_shard=32,ep=32", gb200, 8192, 1, 3, 4916, 0.15},
                          Run{"qwen3-235B-A22B", "pp=4,dp_shard=64,ep=16", gb300, 8192, 2, 12, 6131, 0.18}}) {
    const Workload workload{sizes_of(models::moe_flavor(run.flavor)), 4096, run.global_batch};
    const Settings settings{parse_mesh(run.mesh), run.local_batch, Recompute::kNone, run.stages_per_rank};
    const double tokens = static_cast<double>(run.global_batch * 4096) /
                          time_of(workload, settings, run.hardware).step() / static_cast<double>(settings.mesh.ranks());
    EXPECT_NEAR(tokens / run.measured, 1, run.within) << run.flavor << " on " << run.mesh;
    RecordProperty(run.mesh, std::to_string(tokens));
  }
}

/// What tensors had of an H200 at most, docs/gpu.md; with nothing recomputed.
TEST(Forecast, OfMemoryIsWithin10PercentOfOneGpus) {
  const std::pair<Published, double> runs[] = {
      {{"1B", "one device", "h200", 2048, 4, 4, Recompute::kNone, 1, 0, 0}, 30.0},
      {{"3B", "one device", "h200", 2048, 4, 4, Recompute::kNone, 1, 0, 0}, 67.3},
      {{"8B", "one device", "h200", 2048, 4, 4, Recompute::kLinear, 1, 0, 0}, 121.7}};
  for (const auto& [run, gibibytes] : runs)
    EXPECT_NEAR(forecast_of(run, hardware_of(run.hardware)).memory.peak / (1 << 30) / gibibytes, 1, 0.1) << run.flavor;
}

template <class Model, class Options>
void expect_counts(const Options& options, const std::string& flavor) {
  const Model model(options);
  const auto sizes = sizes_of(options);
  EXPECT_EQ(sizes.parameters(), static_cast<double>(model.parameter_count())) << flavor;
  EXPECT_EQ(sizes.operations_per_token(512), model.operations_per_token(512)) << flavor;
}

TEST(Forecast, CountsAsTheModelDoes) {
  for (const char* flavor : {"debugmodel", "1B", "8B"})
    expect_counts<models::Llama>(models::llama_flavor(flavor), flavor);
  for (const auto& flavor : models::moe_flavors()) expect_counts<models::Moe>(models::moe_flavor(flavor), flavor);
  auto biased = models::llama_flavor("debugmodel");
  biased.attention_bias = true;
  expect_counts<models::Llama>(biased, "attention_bias");
}

}  // namespace
}  // namespace lockstep::trainer::forecast
