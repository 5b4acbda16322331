// Runs that go on from checkpoints: their own, another run's, one of an older format.
#include "trainer/identity/run_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tests/support/recorded_steps.h"
#include "tests/support/temporary_folder.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/job/batching.h"
#include "trainer/job/job_file.h"

namespace lockstep::trainer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;

class RunStarts : public ::testing::Test {
 protected:
  /// A resolved job whose checkpoints are in the folder of this test.
  Job job(const std::string& overrides = "") const {
    const auto others = parse_toml(overrides, "overrides");
    auto job = parse_job("[training]\nsteps = 10\nlocal_batch_size = 4\n[checkpoint]\nenable = true\n", "j", others);
    job.job.dump_folder = folder_.path();
    job.training.dataset_path = {text_};
    return resolve(job, {});
  }
  /// The run of this job saves the step.
  RunOrigin save(const Job& job, int64_t step) const {
    auto origin = run_start(job).origin;
    save_checkpoint(path(step), {step, 8 * step, to_toml(job), 1, origin}, {});
    return origin;
  }
  std::string root() const { return folder_.path() + "/checkpoint"; }
  std::string path(int64_t step) const { return checkpoint_path(root(), step); }

  TemporaryFolder folder_;
  std::string text_ = folder_.write("text.txt", "the cat sat on the mat");
};

TEST_F(RunStarts, AnewWhereNothingIsSaved) {
  const auto start = run_start(job());
  EXPECT_EQ(start.step, std::nullopt);
  EXPECT_EQ(start.origin.identity.size(), 32u);
  EXPECT_TRUE(start.origin.parents.empty());
}

TEST_F(RunStarts, GoesOnOnAnyMeshWithOtherOutputsAndChecks) {
  const auto origin = save(job(), 3);
  const auto start =
      run_start(job("[training]\nlocal_batch_size = 2\n[parallelism]\ndata_parallel_shard_degree = 2\n"
                    "[metrics]\nlog_freq = 3\n[record]\nfolder = \"traces\"\n[verify]\nenable = true\n"));
  EXPECT_EQ(start.step, 3);
  EXPECT_EQ(start.origin, origin);
  EXPECT_TRUE(start.allowed.empty());
}

TEST_F(RunStarts, NothingThatChangesBitsChangesUnsaid) {
  save(job(), 3);
  EXPECT_EQ(message_of<BadInput>([&] { run_start(job("[optimizer]\nlr = 0.5\n[debug]\nseed = 7\n")); }),
            path(3) +
                ": was saved by another run: optimizer.lr was 0.0008, is 0.5; debug.seed was 0, is 7. Give the "
                "values that it had, choose another checkpoint.folder, or go on with --checkpoint.allow_changed "
                "optimizer.lr,debug.seed.");
  folder_.write("text.txt", "the cat sat on the hat");
  EXPECT_THAT(message_of<BadInput>([&] { run_start(job()); }), HasSubstr("training.dataset_path was data "));
}

TEST_F(RunStarts, WhatIsAllowedMakesASuccessor) {
  const auto parent = save(job(), 3);
  const auto changed = job("[optimizer]\nlr = 0.5\n[checkpoint]\nallow_changed = [\"optimizer.lr\"]\n");
  const auto start = run_start(changed);
  EXPECT_EQ(start.step, 3);
  EXPECT_THAT(start.allowed, ElementsAre("optimizer.lr was 0.0008, is 0.5"));
  EXPECT_THAT(start.origin.parents, ElementsAre(RunOrigin::Parent{parent.identity, 3}));
  EXPECT_NE(start.origin.identity, parent.identity);

  const auto mine = save(changed, 5);
  EXPECT_EQ(mine, start.origin) << "its own checkpoints go on as the same run";
  const auto rest = run_start(job("[optimizer]\nlr = 0.5\n"));
  EXPECT_EQ(rest.step, 5);
  EXPECT_EQ(rest.origin, mine) << "without being allowed again";
  EXPECT_THAT(message_of<BadInput>([&] { run_start(job()); }), HasSubstr("optimizer.lr was 0.5, is 0.0008"));
}

TEST_F(RunStarts, ASuccessorWritesOverNothing) {
  save(job(), 3);
  save(job(), 6);
  const auto changed = "[optimizer]\nlr = 0.5\n[checkpoint]\nallow_changed = [\"optimizer.lr\"]\nload_step = 3\n";
  EXPECT_EQ(message_of<BadInput>([&] { run_start(job(changed)); }),
            root() +
                ": has step 6 of the run that this one would follow from step 3 on, and would write over. Copy step "
                "3 to another checkpoint.folder, or leave checkpoint.load_step out.");
}

TEST_F(RunStarts, PruningFollowsTheChainAndNothingElse) {
  const auto parent = save(job(), 1);
  save(job(), 2);
  const auto changed = job("[optimizer]\nlr = 0.5\n[checkpoint]\nallow_changed = [\"optimizer.lr\"]\n");
  const auto mine = save(changed, 3);
  save(changed, 4);
  save_checkpoint(path(9), {9, 0, "", 1, {"somebody else's", "", {}}}, {});
  remove_old_checkpoints(root(), 2, mine);
  EXPECT_THAT(complete_steps(root()), ElementsAre(3, 4, 9));
  remove_old_checkpoints(root(), 1, parent);
  EXPECT_THAT(complete_steps(root()), ElementsAre(3, 4, 9)) << "a successor's are not the parent's";
}

TEST_F(RunStarts, AnInterruptedRunSavesBesideAnotherRuns) {
  const auto other = save(job("[debug]\nseed = 7\n"), 3);
  auto interrupted = job();
  interrupted.checkpoint.enable = false;
  const auto origin = run_start(interrupted).origin;
  EXPECT_EQ(root_for_interrupted(interrupted, origin), root() + "-" + origin.identity.substr(0, 8));
  EXPECT_EQ(root_for_interrupted(interrupted, other), root());
  std::filesystem::create_directories(path(5));
  std::ofstream(path(5) + "/index.json") << "damaged";
  EXPECT_EQ(root_for_interrupted(interrupted, other), root() + "-" + other.identity.substr(0, 8));
}

TEST_F(RunStarts, WhatIsOpenIsAsTheCheckpointHasIt) {
  auto saved = job("[parallelism]\ndata_parallel_shard_degree = 2\n");
  ASSERT_EQ(saved.training.global_batch_size, 8);
  save(saved, 3);
  auto open = saved;
  open.training.global_batch_size = -1;
  for (const auto& [ranks, local] : {std::pair{1, 4}, {2, 4}, {4, 2}, {8, 1}}) {
    open.parallelism.data_parallel_shard_degree = ranks;
    const auto resolved = resolve(with_saved_values(open, {}), {});
    EXPECT_EQ(resolved.training.global_batch_size, 8) << ranks;
    EXPECT_EQ(resolved.training.local_batch_size, local) << ranks;
    EXPECT_EQ(run_start(resolved).step, 3);
  }
  open.parallelism.data_parallel_shard_degree = -1;  // the rest of the launch's ranks
  const auto of_launch = with_saved_values(open, {.rank = 0, .world = 4, .simulated = false});
  EXPECT_EQ(of_launch.training.local_batch_size, 2);
  EXPECT_EQ(with_saved_values(open, {}).training.local_batch_size, 4);
  open.checkpoint.enable = false;
  EXPECT_EQ(with_saved_values(open, {}).training.global_batch_size, -1);
}

/// A folder that a build of format version 2 wrote: it does not say whose it is, its job does.
TEST_F(RunStarts, ACheckpointOfAnOlderFormatIsJudgedByItsJob) {
  std::filesystem::create_directories(root());
  std::filesystem::copy(LOCKSTEP_SOURCE_DIR "/tests/trainer/identity/samples/version-2", path(1));
  auto same = parse_saved_job(Checkpoint(path(1)).metadata().job, "sample");
  same.job.dump_folder = folder_.path();
  same.training.dataset_path = {text_};
  same.checkpoint.enable = true;
  const auto start = run_start(same);
  EXPECT_EQ(start.step, 1);
  EXPECT_EQ(start.origin.identity.size(), 32u);
  same.optimizer.lr = 0.5;
  EXPECT_THAT(message_of<BadInput>([&] { run_start(same); }), HasSubstr("optimizer.lr was 0.0008, is 0.5"));
  same.optimizer = {};  // of today
  EXPECT_THAT(message_of<BadInput>([&] { run_start(same); }), HasSubstr("optimizer.decay_1d was false, is true"));
}

}  // namespace
}  // namespace lockstep::trainer
