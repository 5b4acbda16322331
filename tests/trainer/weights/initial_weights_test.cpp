// A job that begins with given weights has them in every bit on every mesh; another model's are refused.
#include "trainer/identity/initial_weights.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/redistribution/gather.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/trainer/weights/foreign_folder.h"
#include "trainer/identity/run_identity.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"
#include "trainer/optim/weight_average.h"
#include "trainer/state/state_checkpoint.h"
#include "trainer/state/state_digest.h"
#include "trainer/step/training_run.h"
#include "trainer/weights/exchange/compare_weights.h"
#include "trainer/weights/exchange/exchange_weights.h"
#include "trainer/weights/exchange/open_weights.h"

namespace lockstep::trainer {
namespace {

using testing::ForeignFolder;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::message_of;

Job job_of(const std::string& folder) {
  Job job;
  job.model = open_weights(folder)->model();
  job.training.seq_len = 6, job.training.local_batch_size = job.training.global_batch_size = 2;
  job.parallelism.data_parallel_shard_degree = 1;
  job.checkpoint.initial_load_path = folder;
  return job;
}

TrainingRun run_of(const Job& job, const char* mesh) { return {job, {.mesh = parse_mesh(mesh)}}; }

TEST(InitialWeights, AreTheFoldersOnEveryMesh) {
  for (const char* kind : {"llama", "qwen2", "gpt2"}) {
    const ForeignFolder folder(kind, {});
    const auto job = job_of(folder.path());
    const auto alone = run_of(job, "tp=1");
    const auto digest = state_digest(alone.state()).text();
    for (const auto& entry : alone.state())
      if (entry.division.parts().size() == 1)
        EXPECT_TRUE(
            gather(entry.value).equal(whole_tensor(*open_weights(folder.path()), entry.division.parts()[0].name)));
    for (const char* mesh : {"tp=2", "tp=3", "dp_shard=2,tp=2", "dp_replicate=2", "dp_shard=2,tp=3"})
      EXPECT_EQ(state_digest(run_of(job, mesh).state()).text(), digest) << kind << " " << mesh;
    auto drawn = job;
    drawn.checkpoint.initial_load_path.clear();
    EXPECT_NE(state_digest(run_of(drawn, "tp=1").state()).text(), digest);
  }
}

TEST(InitialWeights, OfACheckpointLeaveOptimizerStateAtZero) {
  const ForeignFolder folder("llama", {});
  const TemporaryFolder work;
  auto job = job_of(folder.path());
  auto run = run_of(job, "tp=2");
  TokenBatch batch{2, 6, {}, {}};
  for (int64_t i = 0; i < 12; ++i) batch.tokens.push_back(i), batch.labels.push_back(i + 1);
  run.step(1, batch, 1e-3);
  save_state(work.file("saved"), {1, 2, to_toml(job)}, run.state());
  job.checkpoint.initial_load_path = work.file("saved");
  const auto next = run_of(job, "dp_shard=2");
  for (size_t i = 0; i < next.state().size(); ++i) {
    EXPECT_TRUE(gather(next.state()[i].value).equal(gather(run.state()[i].value)));
    EXPECT_EQ(gather(next.state()[i].slot("mean")).abs().max().item<float>(), 0);
  }
}

TEST(InitialWeights, AreWhereAveragesBegin) {
  const ForeignFolder folder("llama", {});
  auto job = job_of(folder.path());
  job.optimizer.ema_decay = 0.9;
  const auto run = run_of(job, "tp=2");
  for (const auto& entry : run.state())
    EXPECT_TRUE(gather(averaged_value(entry)).equal(gather(entry.value))) << entry.name;
}

TEST(InitialWeights, OfAnotherModelAreRefusedByTheKeysThatDiffer) {
  const ForeignFolder folder("llama", {});
  auto job = job_of(folder.path());
  job.model.rope_theta = 500000, job.model.tied_head = true, job.model.hidden = 26;
  EXPECT_THAT(
      message_of<Error>([&] { run_of(job, "tp=1"); }),
      HasSubstr(
          "holds weights of another model: model.hidden is 24, not 26; model.rope_theta is 10000.0, not 500000.0; "
          "model.tied_head is false, not true. Give the job the model of the weights."));
}

TEST(InitialWeights, AreAPartOfWhatARunIs) {
  const ForeignFolder one("llama", {}), other("llama", {{"rms_norm_eps", 1e-6}});
  const auto with = [&](const std::string& folder) {
    Job job;
    job.checkpoint.initial_load_path = folder;
    return with_initial_weights(job);
  };
  EXPECT_EQ(with(one.path()).checkpoint.initial_load_digest.size(), 32u);
  const auto identity = [](const Job& job) { return identity_text(identity_facts(job, "")); };
  EXPECT_EQ(identity(with(one.path())), identity(with(ForeignFolder("llama", {}).path())));
  EXPECT_NE(identity(with(one.path())), identity(with(other.path())));
  EXPECT_NE(identity(with(one.path())), identity(Job{}));
  auto pinned = with(one.path());
  pinned.checkpoint.initial_load_path = other.path();
  EXPECT_THAT(message_of<Error>([&] { with_initial_weights(pinned); }),
              HasSubstr("as checkpoint.initial_load_digest says"));
  EXPECT_THAT(message_of<Error>([&] { with("/nowhere"); }), HasSubstr("/nowhere is no folder"));
  pinned.checkpoint.initial_load_path.clear();
  EXPECT_THAT(message_of<Error>([&] { with_initial_weights(pinned); }), HasSubstr("no checkpoint.initial_load_path"));
}

TEST(ExchangedWeights, ComeBackAsTheyWere) {
  for (const char* kind : {"llama", "qwen2", "gpt2"})
    for (const int64_t bytes : {int64_t{1} << 30, int64_t{4000}}) {
      const ForeignFolder folder(kind, {});
      const TemporaryFolder work;
      import_weights(folder.path(), work.file("ours"));
      EXPECT_TRUE(Checkpoint(work.file("ours")).damage().empty());
      export_weights(work.file("ours"), work.file("theirs"), {.file_bytes = bytes, .length = 8});
      EXPECT_EQ(std::filesystem::exists(work.file("theirs/model.safetensors.index.json")), bytes == 4000);
      EXPECT_THAT(compare_weights(folder.path(), work.file("theirs")), IsEmpty());
      EXPECT_THAT(compare_weights(work.file("ours"), work.file("theirs")), IsEmpty());
      const auto run = run_of(job_of(work.file("ours")), "tp=2");
      EXPECT_EQ(state_digest(run_of(job_of(folder.path()), "tp=1").state()), state_digest(run.state()));
    }
}

TEST(ExchangedWeights, AreResharded) {
  const ForeignFolder folder("llama", {});
  const TemporaryFolder work;
  import_weights(folder.path(), work.file("ours"));
  reshard_checkpoint(work.file("ours"), work.file("cut"), 5);
  EXPECT_EQ(Checkpoint(work.file("cut")).tensor("norm.weight").chunks.size(), 5u);
  EXPECT_EQ(saved_metadata(work.file("cut")), saved_metadata(work.file("ours")));
  EXPECT_THAT(compare_weights(work.file("ours"), work.file("cut")), IsEmpty());
  EXPECT_THAT(message_of<Error>([&] { reshard_checkpoint(work.file("ours"), work.file("cut"), 2); }),
              HasSubstr("exists"));
}

TEST(ExchangedWeights, DifferencesAreNamed) {
  const ForeignFolder folder("llama", {}), rounded("llama", {}, "BF16"), tied("llama", {{"tie_word_embeddings", true}});
  EXPECT_THAT(compare_weights(folder.path(), rounded.path()), IsEmpty());
  const auto missing = compare_weights(folder.path(), tied.path());
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0].name, "output.weight");
  EXPECT_EQ(missing[0].what, "only in " + folder.path());
  ForeignFolder changed("llama", {});
  changed.change("model.norm.weight", 3, 100);
  const auto one = compare_weights(changed.path(), folder.path());
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].name, "norm.weight");
  EXPECT_EQ(one[0].different, 1);
  EXPECT_EQ(one[0].largest, 100 - folder.value("model.norm.weight")[3].item<double>());
}

TEST(InitialWeights, AreNotImportedForAJobOfAnotherModel) {
  const ForeignFolder folder("llama", {});
  const TemporaryFolder work;
  auto model = open_weights(folder.path())->model();
  model.rope_theta = 2 * model.rope_theta.value();
  EXPECT_THAT(message_of<BadInput>([&] { import_weights(folder.path(), work.file("ours"), &model); }),
              HasSubstr("holds weights of another model: model.rope_theta is"));
  EXPECT_FALSE(std::filesystem::exists(work.file("ours")));
}

}  // namespace
}  // namespace lockstep::trainer
