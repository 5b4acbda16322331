// Changes of low rank on their way: begun with, gone on with, merged; averages in the place of weights.
#include "trainer/weights/merged_weights.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/weights/foreign_folder.h"
#include "trainer/job/job_file.h"
#include "trainer/optim/weight_average.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"
#include "trainer/step/training_run.h"
#include "trainer/weights/exchange/exchange_weights.h"
#include "trainer/weights/exchange/open_weights.h"

namespace lockstep::trainer {
namespace {

using testing::ForeignFolder;
using ::testing::HasSubstr;
using testing::message_of;

Job job_of(const std::string& folder, const LoraSection& lora = {}) {
  Job job;
  job.model = open_weights(folder)->model();
  job.training.seq_len = 6, job.training.local_batch_size = job.training.global_batch_size = 2;
  job.parallelism.data_parallel_shard_degree = 1;
  job.checkpoint.initial_load_path = folder;
  job.lora = lora;
  return job;
}

TokenBatch batch_of() {
  TokenBatch batch{2, 6, {}, {}};
  for (int64_t i = 0; i < 12; ++i) batch.tokens.push_back(i), batch.labels.push_back(i + 1);
  return batch;
}

/// Three steps on a mesh, saved.
std::string trained(const TemporaryFolder& work, const Job& job, const char* mesh = "dp_shard=2") {
  TrainingRun run(job, {.mesh = parse_mesh(mesh)});
  for (int64_t step = 1; step <= 3; ++step) run.step(step, batch_of(), 1e-2);
  const auto folder = work.file("saved-" + std::to_string(job.lora.rank) + (job.lora.dora ? "d" : ""));
  save_state(folder, {3, 6, to_toml(job)}, run.state());
  return folder;
}

at::Tensor logits_of(const Job& job, const char* mesh = "one device") {
  TrainingRun run(job, {.mesh = parse_mesh(mesh)});
  return run.logits(at::arange(12, at::kLong).view({2, 6}));
}

/// A small model of drawn weights.
Job drawn(const char* name, const LoraSection& lora) {
  Job job;
  job.model.name = name;
  job.model.width = 16, job.model.layers = 2, job.model.heads = 4, job.model.vocabulary = 32;
  if (job.model.name == "llama3") job.model.key_value_heads = 2, job.model.hidden = 24;
  job.training.seq_len = 6, job.training.local_batch_size = job.training.global_batch_size = 2;
  job.parallelism.data_parallel_shard_degree = 1;
  job.lora = lora;
  return job;
}

TEST(MergedWeights, AreTheChangedModels) {
  for (const char* name : {"llama3", "gpt2"})
    for (const bool dora : {false, true}) {
      const TemporaryFolder work;
      const LoraSection lora{.rank = 2, .alpha = 8, .dora = dora};
      const auto saved = trained(work, drawn(name, lora));
      merge_weights(saved, work.file("merged"), false);
      const auto before = logits_of(drawn(name, {})), changed = logits_of(job_of(saved, lora));
      const auto merged = logits_of(job_of(work.file("merged")), "tp=2");
      EXPECT_FALSE(at::allclose(before, changed, 1e-3, 1e-3)) << "nothing was trained";
      EXPECT_TRUE(at::allclose(merged, changed, 1e-5, 1e-5)) << name << dora << (merged - changed).abs().max();
      export_weights(saved, work.file("foreign"), {});
      EXPECT_TRUE(logits_of(job_of(work.file("foreign"))).equal(merged)) << name << dora;
    }
}

TEST(MergedWeights, ChangesAreGoneOnWithOnAnyMesh) {
  const ForeignFolder folder("llama", {});
  const TemporaryFolder work;
  const LoraSection lora{.rank = 3, .dora = true};
  const auto saved = trained(work, job_of(folder.path(), lora), "tp=2");
  const auto job = job_of(saved, lora);
  const auto digest = state_digest(TrainingRun(job, {.mesh = parse_mesh("one device")}).state()).text();
  for (const char* mesh : {"dp_shard=2", "tp=3", "dp_shard=2,tp=2"})
    EXPECT_EQ(state_digest(TrainingRun(job, {.mesh = parse_mesh(mesh)}).state()).text(), digest) << mesh;
  auto differs = job;
  differs.lora.rank = 2;
  EXPECT_THAT(
      message_of<BadInput>([&] { logits_of(differs); }),
      HasSubstr("holds changes of low rank with lora.rank 3; the job's is 2. Give the job theirs, or merge them"));
  differs.lora = {};
  EXPECT_THAT(message_of<BadInput>([&] { logits_of(differs); }), HasSubstr("merge"));
  differs = job, differs.lora.alpha = 15;
  EXPECT_THAT(message_of<BadInput>([&] { logits_of(differs); }), HasSubstr("lora.alpha 16.0; the job's is 15.0"));
}

TEST(MergedWeights, WithoutChangesThereIsNothingToMerge) {
  const ForeignFolder folder("llama", {});
  const TemporaryFolder work;
  const auto saved = trained(work, job_of(folder.path()));
  EXPECT_THAT(message_of<BadInput>([&] { merge_weights(saved, work.file("merged"), false); }),
              HasSubstr("holds no changes of low rank to merge"));
  EXPECT_THAT(message_of<BadInput>([&] { merge_weights(saved, work.file("merged"), true); }),
              HasSubstr("holds no averages of weights"));
}

TEST(AveragedWeights, AreWhatTheOptimizerKeeps) {
  const ForeignFolder folder("llama", {});
  const TemporaryFolder work;
  auto job = job_of(folder.path());
  job.optimizer.ema_decay = 0.5;
  TrainingRun run(job, {.mesh = parse_mesh("tp=2")});
  for (int64_t step = 1; step <= 3; ++step) run.step(step, batch_of(), 1e-2);
  save_state(work.file("saved"), {3, 6, to_toml(job)}, run.state());
  merge_weights(work.file("saved"), work.file("averages"), true);
  const auto averages = job_of(work.file("averages"));
  TrainingRun of_averages(averages, {.mesh = parse_mesh("one device")});
  for (size_t p = 0; p < run.state().size(); ++p) {
    const auto value = gather(of_averages.state()[p].value);
    EXPECT_TRUE(value.equal(gather(averaged_value(run.state()[p])))) << run.state()[p].name;
    EXPECT_FALSE(value.equal(gather(run.state()[p].value))) << run.state()[p].name;
  }
  const auto digest = state_digest(run.state()).text();
  EXPECT_EQ(run.evaluate(3, batch_of(), true).loss_sum, of_averages.evaluate(3, batch_of()).loss_sum);
  EXPECT_NE(run.evaluate(3, batch_of(), true).loss_sum, run.evaluate(3, batch_of()).loss_sum);
  EXPECT_EQ(state_digest(run.state()).text(), digest);
}

}  // namespace
}  // namespace lockstep::trainer
