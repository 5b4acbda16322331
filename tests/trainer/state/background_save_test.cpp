// A save beside the steps writes what one writes that the steps wait for, of the state as it was when it began.
#include "trainer/state/background_save.h"

#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "core/error.h"
#include "runtime/tensor/sharded_tensor.h"
#include "tests/support/small_models.h"
#include "tests/support/temporary_folder.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"

namespace lockstep::trainer {
namespace {

namespace fs = std::filesystem;

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    files[entry.path().filename().string()] = file_content(entry.path().string());
  return files;
}

TrainingRun run_on(const char* mesh) {
  TrainingRun::Options options;
  options.mesh = parse_mesh(mesh);
  options.make_model = testing::small_llama;
  return {testing::small_job(), options};
}

void add_one(TrainingState& state) {
  const at::NoGradGuard no_grad;
  for (auto& entry : state)
    for (auto [prefix, tensor] : entry.tensors()) tensor.add_(1);
}

class OnMesh : public ::testing::TestWithParam<const char*> {};

TEST_P(OnMesh, WritesTheSameFiles) {
  auto run = run_on(GetParam());
  const TemporaryFolder folder;
  BackgroundSave save(run.mesh());
  for (const int64_t step : {1, 2}) {  // the second into the buffers of the first
    const CheckpointMetadata metadata{step, 7 * step, "job"};
    const auto plain = folder.file(std::to_string(step)), beside = folder.file("beside-" + std::to_string(step));
    save_state(plain, metadata, run.state());
    save.begin(beside, metadata, run.state(), {});
    add_one(run.state());
    save.finish();
    EXPECT_FALSE(save.is_under_way());
    EXPECT_EQ(files_in(beside), files_in(plain));
  }
}

INSTANTIATE_TEST_SUITE_P(Meshes, OnMesh,
                         ::testing::Values("one device", "dp_shard=6", "dp_shard=2,tp=3", "dp_replicate=2",
                                           "pp=2,tp=3"));

TEST(BackgroundSave, TheFolderIsNoCheckpointBeforeItIsWritten) {
  auto run = run_on("dp_shard=2");
  const TemporaryFolder folder;
  BackgroundSave save(run.mesh());
  std::promise<void> gate;
  BackgroundSave::Chores chores;
  chores.before = [&, open = gate.get_future().share()] { open.wait(); };
  save.begin(folder.file("c"), {1, 1, ""}, run.state(), chores);
  EXPECT_TRUE(save.is_under_way());
  EXPECT_FALSE(save.has_news());
  EXPECT_THROW(Checkpoint{folder.file("c")}, BadInput);
  gate.set_value();
  save.finish();
  EXPECT_EQ(Checkpoint(folder.file("c")).damage(), std::vector<std::string>{});
}

/// The next one waits for it, so that two never write at a time.
TEST(BackgroundSave, TheNextOneWaits) {
  auto run = run_on("one device");
  const TemporaryFolder folder;
  BackgroundSave save(run.mesh());
  std::vector<std::string> order;
  const auto chores = [&](const std::string& name) {
    return BackgroundSave::Chores{[&order, name] { order.push_back(name + " begins"); },
                                  [&order, name] { order.push_back(name + " is there"); }};
  };
  save.begin(folder.file("a"), {1, 1, ""}, run.state(), chores("a"));
  save.begin(folder.file("b"), {2, 2, ""}, run.state(), chores("b"));
  save.finish();
  EXPECT_THAT(order, ::testing::ElementsAre("a begins", "a is there", "b begins", "b is there"));
}

TEST(BackgroundSave, WhatFailsIsThrownAtTheMeetingAndOnce) {
  auto run = run_on("dp_shard=2");
  const TemporaryFolder folder;
  folder.write("file", "");
  BackgroundSave save(run.mesh());
  save.begin(folder.file("file/c"), {1, 1, ""}, run.state(), {});
  try {
    save.finish();
    FAIL();
  } catch (const FileError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(folder.file("file")));
  }
  save.finish();
  save.begin(folder.file("c"), {1, 1, ""}, run.state(), {});
  save.finish();
  EXPECT_TRUE(fs::exists(folder.file("c/index.json"))) << "the next one is not hurt";
}

TEST(BackgroundSave, WhoLeavesDoesNotCutItShort) {
  auto run = run_on("dp_shard=2");
  const TemporaryFolder folder;
  { BackgroundSave(run.mesh()).begin(folder.file("c"), {1, 1, ""}, run.state(), {}); }
  auto again = run_on("tp=2");
  add_one(again.state());
  load_state(folder.file("c"), again.state());
  EXPECT_EQ(state_digest(again.state()), state_digest(run.state()));
}

}  // namespace
}  // namespace lockstep::trainer
