// A state of any mesh, saved as unfused tensors and loaded on any other.
#include "trainer/state/state_checkpoint.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "rng/fill.h"
#include "rng/stream.h"
#include "rng/subarray.h"
#include "runtime/redistribution/gather.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

using testing::same_bits;

TrainingRun make_run(const char* mesh, uint64_t seed = 7) {
  auto job = testing::small_job();
  job.debug.seed = static_cast<int64_t>(seed);
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  return {job, options};
}

/// Values that tell name, tensor and index apart.
void number(TrainingState& state) {
  const at::NoGradGuard no_grad;
  double first = 0;
  for (auto& entry : state)
    for (auto [prefix, tensor] : entry.tensors()) {
      tensor.copy_(at::arange(tensor.numel(), at::kFloat).add(first).reshape(tensor.sizes()));
      first += static_cast<double>(tensor.numel());
    }
}

at::Tensor stored(const Checkpoint& checkpoint, const std::string& name) {
  const auto bytes = checkpoint.read(name);
  auto tensor = at::empty(checkpoint.tensor(name).shape, at::kFloat);
  std::memcpy(tensor.mutable_data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

TEST(StateCheckpoint, StoresFusedWeightsApart) {
  auto run = make_run("dp_shard=2,tp=3");
  number(run.state());
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 2, ""}, run.state());
  const Checkpoint checkpoint(folder.file("c"));
  const auto find = [&](const std::string& name) -> const ParameterState& {
    for (const auto& entry : run.state())
      if (entry.name == name) return entry;
    throw std::runtime_error(name);
  };
  // 6 heads of 4 rows, 3 key-value heads: groups of 2 x 4 + 4 + 4 rows.
  const auto qkv = gather(find("layers.1.attention.qkv.weight").slot("mean")).view({3, 16, 24});
  const std::string prefix = "optimizer.mean.layers.1.attention.";
  EXPECT_TRUE(same_bits(stored(checkpoint, prefix + "wq.weight"), qkv.narrow(1, 0, 8).reshape({24, 24})));
  EXPECT_TRUE(same_bits(stored(checkpoint, prefix + "wk.weight"), qkv.narrow(1, 8, 4).reshape({12, 24})));
  EXPECT_TRUE(same_bits(stored(checkpoint, prefix + "wv.weight"), qkv.narrow(1, 12, 4).reshape({12, 24})));
  const auto gate_up = gather(find("layers.0.feed_forward.gate_up.weight").value).view({3, 2, 12, 24});
  const std::string feed = "layers.0.feed_forward.";
  EXPECT_TRUE(same_bits(stored(checkpoint, feed + "w1.weight"), gate_up.select(1, 0).reshape({36, 24})));
  EXPECT_TRUE(same_bits(stored(checkpoint, feed + "w3.weight"), gate_up.select(1, 1).reshape({36, 24})));
  EXPECT_TRUE(same_bits(stored(checkpoint, "norm.weight"), gather(find("head.norm.weight").value)));
  for (const auto& [name, record] : checkpoint.tensors())
    EXPECT_THAT(name, ::testing::Not(::testing::AnyOf(::testing::HasSubstr("qkv"), ::testing::HasSubstr("gate_up"),
                                                      ::testing::HasSubstr("head"))));
}

TEST(StateCheckpoint, OfOneDeviceHoldsEveryTensorInOneChunk) {
  auto run = make_run("one device");
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 2, ""}, run.state());
  const Checkpoint checkpoint(folder.file("c"));
  for (const auto& [name, record] : checkpoint.tensors()) EXPECT_EQ(record.chunks.size(), 1u) << name;
}

class FromMeshToMesh : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(FromMeshToMesh, KeepsEveryBit) {
  const auto [from, to] = GetParam();
  auto source = make_run(from);
  number(source.state());
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 2, "job"}, source.state());
  auto target = make_run(to, 8);
  EXPECT_EQ(load_state(folder.file("c"), target.state()).sample, 2);
  EXPECT_EQ(state_digest(target.state()), state_digest(source.state()));
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, FromMeshToMesh,
    ::testing::Combine(::testing::Values("one device", "dp_shard=6", "tp=2", "dp_shard=2,tp=3", "pp=2,dp_shard=2"),
                       ::testing::Values("one device", "dp_shard=3", "tp=3", "dp_shard=4,tp=2", "pp=3,tp=2")));

TEST(StateCheckpoint, GoesOnBitByBit) {
  const auto job = testing::small_job();
  auto run = make_run("dp_shard=2,tp=3");
  run.step(1, testing::batch_for(job, 1), 1e-2);
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 12, ""}, run.state());
  auto again = make_run("dp_shard=2,tp=3");
  load_state(folder.file("c"), again.state());
  const auto expected = run.step(2, testing::batch_for(job, 2), 1e-2);
  EXPECT_EQ(again.step(2, testing::batch_for(job, 2), 1e-2).loss, expected.loss);
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
}

TEST(StateCheckpoint, AnotherModelsTensorsDoNotFit) {
  auto run = make_run("one device");
  const TemporaryFolder folder;
  save_state(folder.file("c"), {1, 2, ""}, run.state());
  auto job = testing::small_job();
  TrainingRun::Options options;
  options.make_model = [] {
    auto other = testing::small_llama_options();
    other.key_value_heads = 6;
    return std::make_unique<models::Llama>(other);
  };
  TrainingRun other(job, options);
  try {
    load_state(folder.file("c"), other.state());
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(error.what(),
              folder.file("c") + ": layers.0.attention.wk.weight is F32 [12, 24], the job's model has F32 [24, 24]");
  }
}

/// Each stored tensor's initial values are those of its own name and index, on every mesh.
TEST(InitialState, IsDrawnTensorByTensor) {
  for (const char* mesh : {"one device", "dp_shard=2,tp=3", "dp_shard=6"}) {
    auto run = make_run(mesh);
    const TemporaryFolder folder;
    save_state(folder.file("c"), {0, 0, ""}, run.state());
    const Checkpoint checkpoint(folder.file("c"));
    for (const auto& entry : run.state())
      for (size_t part = 0; part < entry.division.parts().size(); ++part) {
        const auto& [name, rows, initial] = entry.division.parts()[part];
        auto expected = at::full(entry.division.sizes_of(part), initial.constant, at::kFloat);
        if (!initial.is_constant)
          rng::fill(expected.mutable_data_ptr(), rng::ScalarKind::kFloat32, initial.distribution, rng::Key{7},
                    rng::stream_of({0, name, 0}), rng::Subarray::whole(entry.division.sizes_of(part)));
        EXPECT_TRUE(same_bits(stored(checkpoint, name), expected)) << mesh << " " << name;
      }
  }
}

}  // namespace
}  // namespace lockstep::trainer
