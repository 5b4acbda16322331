// Forecasts of mixtures of experts: what experts add to a layer, by hand.
#include <gtest/gtest.h>

#include "trainer/forecast/communication.h"
#include "trainer/forecast/computing.h"
#include "trainer/forecast/meshes.h"

namespace lockstep::trainer::forecast {
namespace {

/// Two layers without experts and twelve with eight of them, two for each token.
models::MoeOptions options() {
  models::MoeOptions o{models::LlamaOptions{1024, 14, 16, 8, 4096, 32000},
                       {.count = 8, .per_token = 2, .hidden = 2048, .shared = 1}};
  o.dense_layers = 2;
  return o;
}
const ModelSizes kModel = sizes_of(options());
const Workload kWorkload{kModel, 4096, 64};
constexpr double kOne = 3.0 * 1024 * 2048;  ///< parameters of an expert

/// Bytes alone.
Hardware without_latency() {
  auto hardware = hardware_of("h100");
  hardware.host_latency_seconds = hardware.network_latency_seconds = 0;
  return hardware;
}

Settings on(const char* mesh, Recompute recompute = Recompute::kNone) { return {parse_mesh(mesh), 1, recompute}; }

TEST(ExpertForecast, ALayerHasAllExpertsAndATokenMeetsTwo) {
  const auto dense = dense_layer(kModel), expert = expert_layer(kModel);
  const double attention = 1024.0 * (16 + 2 * 8) * 64 + 1024 * 1024, norms = 2 * 1024;
  EXPECT_EQ(dense.parameters(), attention + norms + 3 * 1024 * 4096);
  EXPECT_EQ(expert.everywhere, attention + norms + 8 * 1024 + kOne) << "a router and what is shared";
  EXPECT_EQ(expert.routed, 8 * kOne);
  EXPECT_EQ(expert.met(), expert.everywhere + 2 * kOne);
  EXPECT_EQ(layers_of(kModel).dense, 2);
  EXPECT_EQ(layers_of(kModel).expert, 12);
}

/// ep over tp, over cp and tp, or experts that tp cuts: of all ranks that have tokens of their own each has its share.
TEST(ExpertForecast, ExpertsAreOnAllRanksThatShareTokens) {
  struct Case {
    const char* mesh;
    int64_t degree, sharding;
  };
  for (const auto& [mesh, degree, sharding] :
       {Case{"dp_shard=8", 1, 8}, Case{"dp_shard=8,ep=4", 4, 2}, Case{"dp_shard=4,tp=2,ep=4", 4, 2},
        Case{"dp_shard=4,tp=2", 2, 4}, Case{"dp_shard=2,cp=2,tp=2,ep=4,etp=2", 8, 1}}) {
    const auto settings = on(mesh);
    EXPECT_EQ(settings.expert_degree(), degree) << mesh;
    EXPECT_EQ(settings.expert_sharding(), sharding) << mesh;
    EXPECT_EQ(rank_parameters(expert_layer(kModel), settings).routed, 8 * kOne / static_cast<double>(degree)) << mesh;
    EXPECT_DOUBLE_EQ(memory_of(kWorkload, settings).state, 12 * kModel.parameters() / 8) << mesh;
  }
}

/// To an expert and back, forward and backward, and once more where layers run again.
TEST(ExpertForecast, RowsTravelFourTimes) {
  auto hardware = without_latency();
  const auto rows = [&](const char* mesh, Recompute recompute = Recompute::kNone) {
    return time_of(kWorkload, on(mesh, recompute), hardware).experts;
  };
  const double bytes = 4 * 2 * 4096.0 * 1024 * 2, microbatches = 8, layers = 12;
  const double inside = hardware.host_bytes_per_second * hardware.links;
  EXPECT_DOUBLE_EQ(rows("dp_shard=8,ep=8"), bytes * 7 / 8 / inside * microbatches * layers);
  EXPECT_DOUBLE_EQ(rows("dp_shard=8,ep=2"), bytes / 2 / inside * microbatches * layers);
  EXPECT_EQ(rows("dp_shard=8"), 0);
  EXPECT_DOUBLE_EQ(rows("dp_shard=8,ep=8", Recompute::kFull), 1.5 * rows("dp_shard=8,ep=8"));
  hardware.ranks_per_host = 2;  // six of eight are elsewhere
  EXPECT_DOUBLE_EQ(rows("dp_shard=8,ep=8"),
                   bytes * 6 / 8 / (hardware.network_bytes_per_second * hardware.links) * microbatches * layers);
}

/// One axis after the other.
TEST(ExpertForecast, RowsGoOverEachAxisThatDividesExperts) {
  const auto hardware = without_latency();
  const auto settings = on("dp_shard=4,cp=2,tp=2,ep=8");
  const double rows = 2 * 4096.0 / 2 / 2 * 1024 * 2 / (hardware.host_bytes_per_second * hardware.links);
  EXPECT_DOUBLE_EQ(Communication(kWorkload, settings, hardware).experts(expert_layer(kModel)),
                   4 * rows * (1.0 / 2 + 1.0 / 2 + 1.0 / 2))
      << "tp, cp and two of dp_shard";
  auto slow = hardware;
  slow.host_latency_seconds = 1;
  EXPECT_NEAR(Communication(kWorkload, settings, slow).experts(expert_layer(kModel)), 4 * 3 * 2, 0.1)
      << "each says first which rows there are";
}

/// Of alternating layers a stage has half with experts; of others it may have none without.
TEST(ExpertForecast, AStageHasAsManyLayersWithExpertsAsThereAreInARow) {
  auto o = options();
  o.dense_layers = 0, o.experts_every = 2;
  const auto alternating = sizes_of(o);
  EXPECT_EQ(alternating.experts.layers, 7);
  EXPECT_EQ(fullest(alternating, 7, 1).expert, 4);
  EXPECT_EQ(fullest(alternating, 4, 1).expert, 2);
  EXPECT_EQ(fullest(alternating, 4, 4).expert, 4) << "four runs of one layer";
  EXPECT_EQ(fullest(kModel, 7, 1).expert, 7);
  EXPECT_EQ(fullest(kModel, 14, 1).expert, 12);
  EXPECT_EQ(fullest(kModel, 14, 1).dense, 2);
}

/// tp gathers what shared experts take, and rows only where it cuts experts.
TEST(ExpertForecast, TensorParallelGathersRowsOfExpertsThatItCuts) {
  const auto hardware = without_latency();
  const auto moves = [&](const char* mesh, const LayerSizes& layer) {
    const auto settings = on(mesh);
    const double one = 4096.0 * 1024 * 2 / 2 / (hardware.host_bytes_per_second * hardware.links);
    return Communication(kWorkload, settings, hardware).tensor(layer) / one;
  };
  EXPECT_DOUBLE_EQ(moves("dp_shard=2,tp=2", dense_layer(kModel)), 8);
  EXPECT_DOUBLE_EQ(moves("dp_shard=2,tp=2,ep=2", expert_layer(kModel)), 8);
  EXPECT_DOUBLE_EQ(moves("dp_shard=2,tp=2", expert_layer(kModel)), 8 + 2 * 4)
      << "rows are gathered, and rows are reduced (expert_traffic_test.cpp)";
}

/// Products of an expert's few rows wait for its weight.
TEST(ExpertForecast, FewRowsWaitForWeights) {
  const auto hardware = hardware_of("h100");
  auto many = options();
  many.experts.count = 1024;
  const Workload few{sizes_of(many), 128, 64};
  const auto seconds = [&](const char* mesh) {
    return layer_seconds(expert_layer(few.model), few, on(mesh), hardware);
  };
  EXPECT_GT(seconds("dp_shard=8"), 2.5 * seconds("dp_shard=8,ep=8"));
}

TEST(ExpertForecast, AMeshIsForecastWithTheDegreesThatAreBest) {
  const auto hardware = hardware_of("h100");
  const auto all = all_meshes(kWorkload, 8, hardware, {});
  EXPECT_EQ(all.size(), 35U) << "3 twos over 5 axes, each once";
  for (const auto& mesh : all) {
    if (!mesh.fits) continue;
    for (const auto ep : {1, 2, 4, 8}) {
      auto degrees = mesh.settings.mesh;
      degrees.ep = ep;
      const auto other = forecast_of(kWorkload, degrees, hardware, {});
      if (other.fits) EXPECT_LE(mesh.time.step(), other.time.step()) << degrees.text();
    }
  }
}

TEST(ExpertForecast, SaysWhyExpertsCannotBeDividedSo) {
  const auto why = [](const ModelSizes& model, const char* mesh) {
    return forecast_of({model, 4096, 96}, parse_mesh(mesh), hardware_of("h100"), {}).why;
  };
  EXPECT_EQ(why(kModel, "dp_shard=4,ep=4"), "");
  EXPECT_EQ(why(kModel, "dp_shard=4,ep=3"), "ep and etp are none that the other axes offer (docs/experts.md)");
  EXPECT_EQ(why(kModel, "dp_shard=4,tp=4,etp=2"), "ep and etp are none that the other axes offer (docs/experts.md)");
  EXPECT_EQ(why(kModel, "dp_shard=3,ep=3"), "ep does not divide 8 experts");
  EXPECT_EQ(why(sizes_of(models::LlamaOptions{}), "dp_shard=4,ep=4"),
            "ep and etp are of experts, which the model has none of");
}

}  // namespace
}  // namespace lockstep::trainer::forecast
