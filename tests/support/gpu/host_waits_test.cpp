// How often a step makes the host wait for a GPU: a few times, however many microbatches, layers and parameters there
// are. The pretended GPU counts.
#include "tests/support/gpu/host_waits.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "runtime/kernels/cuda/cuda_kernels.h"
#include "tests/support/small_models.h"
#include "trainer/step/model_registry.h"

namespace lockstep::trainer {
namespace {

using Waits = std::map<std::string, int>;

struct Steps {
  const char* name;
  const char* mesh = "one device";
  const char* numerics = "native";
  const char* dtype = "float32";
  bool packs = false;
  double attention_dropout = 0;
  bool is_float8 = false;
  const char* waits = "6 copy to the host";  ///< of a step
};

std::string text(const Waits& waits) {
  std::string all;
  for (const auto& [op, count] : waits) all += fmt::format("{}{} {}", all.empty() ? "" : ", ", count, op);
  return all;
}

Waits waits_of_step(const Steps& what, int64_t microbatches, int64_t layers) {
  auto job = testing::small_job();
  job.numerics.mode = what.numerics;
  job.training.device = "cuda";
  job.training.mixed_precision_param = what.dtype;
  job.training.pack_documents = what.packs;
  if (what.is_float8) job.model.converters = {std::string(kFloat8Converter)};
  TrainingRun::Options options;
  options.mesh = parse_mesh(what.mesh);
  const int64_t replicas = options.mesh.dp_shard * options.mesh.dp_replicate;
  job.training.local_batch_size = job.training.global_batch_size / microbatches / replicas;
  options.make_model = [&] {
    auto llama = testing::small_llama_options();
    llama.layers = layers, llama.dropout = 0.1, llama.attention_dropout = what.attention_dropout;
    if (what.is_float8) llama.width = llama.hidden = 96;
    auto model = std::make_unique<models::Llama>(llama);
    EXPECT_EQ(quantize_linears(job, *model).converted.empty(), !what.is_float8);
    return model;
  };
  TrainingRun run(job, options);
  run.step(1, testing::batch_for(job, 1), 1e-2);
  testing::HostWaits::instance().take();
  run.step(2, testing::batch_for(job, 2), 1e-2);
  return testing::HostWaits::instance().take();
}

class HostWaits : public ::testing::TestWithParam<Steps> {};

/// Whose kernels a build without the emulator lacks.
bool is_missing(const Steps& what) {
  return (what.is_float8 || what.numerics == std::string("canonical")) && !cuda::has_kernels();
}

TEST_P(HostWaits, AreAsManyWhateverTheStepIsMadeOf) {
  const auto& what = GetParam();
  if (is_missing(what)) GTEST_SKIP() << "NOT CHECKED: " << what.name << " without the emulator of kernels";
  const auto few = waits_of_step(what, 1, 2);
  EXPECT_EQ(text(waits_of_step(what, 3, 2)), text(few)) << "three microbatches";
  EXPECT_EQ(text(waits_of_step(what, 1, 4)), text(few)) << "four layers";
  EXPECT_EQ(text(few), what.waits);
}

/// What the counts above are counts of.
TEST(HostWaitsOfOps, AreCounted) {
  const auto there = at::arange(4, at::TensorOptions(at::kFloat).device(c10::kCUDA));
  testing::HostWaits::instance().take();
  const auto twice = at::add(there, there);
  EXPECT_EQ(text(testing::HostWaits::instance().take()), "") << "an op";
  at::index(there, {at::gt(there, 1)});  // looks for the mask's elements
  at::nonzero(there), twice.sum().item<float>(), there.cpu(), at::ones(3).to(c10::kCUDA);
  EXPECT_EQ(text(testing::HostWaits::instance().take()),
            "1 aten::_local_scalar_dense, 2 aten::nonzero, 1 copy from the host, 1 copy to the host");
}

INSTANTIATE_TEST_SUITE_P(
    Steps, HostWaits,
    ::testing::Values(Steps{"native"}, Steps{.name = "bfloat16", .dtype = "bfloat16"},
                      Steps{.name = "mesh", .mesh = "dp_shard=2,tp=3", .waits = "5 copy to the host"},
                      Steps{.name = "pipeline", .mesh = "pp=2", .waits = "7 copy to the host"},
                      Steps{.name = "ring", .mesh = "cp=2"}, Steps{.name = "documents", .packs = true},
                      Steps{.name = "float8", .dtype = "bfloat16", .is_float8 = true},
                      Steps{.name = "attention_dropout", .attention_dropout = 0.1},
                      Steps{.name = "canonical", .numerics = "canonical", .waits = "7 copy to the host"},
                      Steps{.name = "canonical_mesh",
                            .mesh = "dp_shard=2,tp=3",
                            .numerics = "canonical",
                            .waits = "7 copy to the host"}),
    [](const auto& steps) { return std::string(steps.param.name); });

}  // namespace
}  // namespace lockstep::trainer
