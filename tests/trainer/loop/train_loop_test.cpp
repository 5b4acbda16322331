#include "trainer/loop/train_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"
#include "trainer/checkpoint/checkpoint_index.h"
#include "trainer/job/batching.h"

namespace lockstep::trainer {
namespace {

/// A small MLP on a text of its own, in a folder of its own.
class TrainLoop : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("lockstep_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream text(folder_ / "text.txt");
    for (int i = 0; i < 400; ++i) text << "the cat " << i * i % 97 << " sat on the mat, ";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Job job(const char* mesh = "dp_shard=2", int64_t steps = 4) const {
    Job job;
    job.job.dump_folder = (folder_ / "out").string();
    job.model.name = "mlp";
    job.training.dataset_path = {(folder_ / "text.txt").string()};
    job.training.seq_len = 16;
    job.training.local_batch_size = 4;
    job.training.global_batch_size = 8;
    job.training.steps = steps;
    job.lr_scheduler.warmup_steps = 1;
    job.lr_scheduler.total_steps = 8;
    job.checkpoint.interval = 2;
    const auto degrees = parse_mesh(mesh);
    set_mesh(job, degrees);
    return resolve(job, {});
  }

  std::filesystem::path folder_;
};

TEST_F(TrainLoop, LowersTheLossAndKeepsMetrics) {
  const auto outcome = train(job("tp=2", 8), {});
  ASSERT_EQ(outcome.steps.size(), 8u);
  EXPECT_LT(outcome.steps.back().loss, outcome.steps.front().loss);
  std::ifstream metrics(folder_ / "out" / "metrics.jsonl");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(metrics), {}, '\n'), 8);
}

/// Each start has a file, whose records are as long for one step as for another.
TEST_F(TrainLoop, WritesCurvesIfAskedTo) {
  const auto sizes = [this] {
    std::vector<uintmax_t> all;
    for (const auto& file : std::filesystem::directory_iterator(folder_ / "out" / "curves"))
      all.push_back(file.file_size());
    std::sort(all.begin(), all.end());
    return all;
  };
  auto job = this->job("dp_shard=2", 2);
  train(job, {});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out" / "tb")) << "nobody asked";
  job.metrics = {.enable_tensorboard = true, .save_tb_folder = "curves"};
  job.checkpoint.enable = true;
  train(job, {});
  ASSERT_EQ(sizes().size(), 1U);
  const auto two_steps = sizes()[0];
  job.training.steps = 5;
  train(job, {});
  ASSERT_EQ(sizes().size(), 2U) << "the resumed run has its own";
  const uintmax_t beginning = 42, again = 31;  // the version; where it goes on from
  EXPECT_EQ(3 * (two_steps - beginning - again), 2 * (sizes()[1] - beginning - again)) << "three steps";
}

/// An MLP of 64 x 256 on dp_shard=2: its numbers by hand.
TEST_F(TrainLoop, MeasuresItsSteps) {
  const auto outcome = train(job("dp_shard=2", 3), {});
  const double parameters = 256 * 64 + 2 * (2 * 64 * 256 + 64 + 256) + 64 * 256 + 256;
  for (const auto& step : outcome.steps) {
    EXPECT_DOUBLE_EQ(step.operations_per_second / step.tokens_per_second, 6 * (parameters - 256 * 64));
    EXPECT_EQ(step.parameter_bytes, 4 * static_cast<int64_t>(parameters));
    EXPECT_EQ(step.gradient_bytes, step.parameter_bytes);
    EXPECT_EQ(step.optimizer_bytes, 2 * step.parameter_bytes) << "AdamW has two";
    ASSERT_TRUE(step.max_loss && step.utilization());
    EXPECT_GE(*step.max_loss, step.loss * (1 - 1e-6)) << "the largest of two means";
    EXPECT_LT(*step.max_loss, 2 * step.loss);
    EXPECT_LT(step.data_seconds, step.step_seconds);
    EXPECT_LE(step.step_seconds, step.seconds);
  }
  EXPECT_EQ(outcome.steps[2].seconds_left, 0);
  EXPECT_DOUBLE_EQ(outcome.steps[0].seconds_left, 2 * outcome.steps[0].seconds);
}

TEST_F(TrainLoop, TheTimeLeftIsThatOfStepsThatThisRunMade) {
  auto saving = job("dp_shard=2", 4);
  saving.checkpoint.enable = true;
  train(saving, {});
  saving.training.steps = 6;
  const auto resumed = train(saving, {});
  ASSERT_EQ(resumed.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(resumed.steps[0].seconds_left, resumed.steps[0].seconds) << "as many again";
}

TEST_F(TrainLoop, IsTheSameEveryTime) { EXPECT_EQ(train(job(), {}).state_digest, train(job(), {}).state_digest); }

TEST_F(TrainLoop, ResumesBitByBit) {
  const auto whole = train(job("dp_shard=2", 4), {});
  auto first = job("dp_shard=2", 2);
  first.checkpoint.enable = true;
  train(first, {});
  auto second = job("dp_shard=2", 4);
  second.checkpoint.enable = true;
  const auto resumed = train(second, {});
  ASSERT_EQ(resumed.steps.size(), 2u);
  EXPECT_EQ(resumed.steps[0].loss, whole.steps[2].loss);
  EXPECT_EQ(resumed.state_digest, whole.state_digest);
}

TEST_F(TrainLoop, MetricsHaveEachStepOnceAfterAResume) {
  auto saving = job("dp_shard=2", 3);
  saving.checkpoint.enable = true;
  saving.checkpoint.interval = 2;
  train(saving, {});
  saving.checkpoint.load_step = 2;
  train(saving, {});
  const auto folder = folder_ / "out";
  std::vector<int> steps;
  std::ifstream metrics(folder / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) steps.push_back(std::stoi(line.substr(line.find(':') + 1)));
  EXPECT_EQ(steps, (std::vector<int>{1, 2, 3}));
  EXPECT_FALSE(std::filesystem::exists(folder / "metrics-1.jsonl"));
  train(job(), {});  // begins anew
  EXPECT_TRUE(std::filesystem::exists(folder / "metrics-1.jsonl"));
}

TEST_F(TrainLoop, SaysWhenAnotherNumericsVersionWroteTheCheckpoint) {
  auto saved = job("dp_shard=2", 2);
  saved.checkpoint.enable = true;
  train(saved, {});
  const auto path = (folder_ / "out" / "checkpoint" / "step-2" / kIndexFile).string();
  const auto notes_of = [&](std::optional<int64_t> version, const char* mode) {
    auto index = parse_index(file_content(path), path);
    index.metadata.numerics_version = version;
    std::ofstream(path) << index_text(index);
    std::string notes;
    TrainEvents events;
    events.on_note = [&](const std::string& note) {
      if (note.starts_with("checkpoint of")) notes += note;
    };
    auto resumed = saved;
    resumed.numerics.mode = mode;
    resumed.checkpoint.allow_changed = {"numerics.mode"};
    train(resumed, events);
    return notes;
  };
  const auto here = std::to_string(kNumericsVersion);
  EXPECT_EQ(notes_of(kNumericsVersion, "canonical"), "");
  EXPECT_EQ(notes_of(0, "native"), "");
  EXPECT_EQ(notes_of(0, "canonical"), "checkpoint of step 2 was written by numerics version 0, this is " + here +
                                          ": the bits from here on are not those of that run");
  EXPECT_EQ(notes_of(std::nullopt, "canonical"),
            "checkpoint of step 2 was written by a numerics version that is not known, this is " + here +
                ": the bits from here on may not be those of that run");
}

TEST_F(TrainLoop, ResumesOnAnotherMeshWithTheSameDataAndRandomness) {
  const auto whole = train(job("dp_shard=2", 4), {});
  auto first = job("dp_shard=2", 2);
  first.checkpoint.enable = true;
  train(first, {});
  auto second = job("tp=3", 4);
  second.checkpoint.enable = true;
  const auto resumed = train(second, {});
  ASSERT_EQ(resumed.steps.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(resumed.steps[i].loss, whole.steps[i + 2].loss, 1e-5 * whole.steps[i + 2].loss);
}

TEST_F(TrainLoop, SavesWhenInterruptedAndGoesOn) {
  TrainEvents events;
  events.on_step = [](const StepMetrics& metrics) {
    if (metrics.step == 3) std::raise(SIGTERM);
  };
  const auto whole = train(job("dp_shard=2", 6), {});
  const auto stopped = train(job("dp_shard=2", 6), events);
  EXPECT_EQ(stopped.interrupted_by, "SIGTERM");
  EXPECT_EQ(stopped.steps.size(), 3u);
  auto rest = job("dp_shard=2", 6);
  rest.checkpoint.enable = true;
  const auto resumed = train(rest, {});
  EXPECT_EQ(resumed.steps.size(), 3u);
  EXPECT_EQ(resumed.state_digest, whole.state_digest);
}

TEST_F(TrainLoop, NamesTheFirstOpThatIsNotFinite) {
  auto diverging = job("tp=2", 8);
  diverging.optimizer.lr = 1e30;
  try {
    train(diverging, {});
    FAIL();
  } catch (const Inconsistency& error) {
    EXPECT_NE(std::string(error.what())
                  .find("are not both finite; parameters are unchanged; the first op with a NaN or "
                        "an infinity is step "),
              std::string::npos)
        << error.what();
  }
}

TEST_F(TrainLoop, AFullDiskDoesNotHideWhatEndedTheRun) {
  auto diverging = job("tp=2", 8);
  diverging.optimizer.lr = 1e30;
  diverging.record.folder = (folder_ / "traces").string();
  diverging.record.payload = "ring:1";  // nothing is written before the run ends
  std::string notes;
  TrainEvents events;
  events.on_note = [&](const std::string& note) { notes += note; };
  const FileSizeLimit limit(16 << 10);
  EXPECT_THROW(train(diverging, events), Inconsistency);
  EXPECT_NE(notes.find("the failed step could not be recorded: "), std::string::npos) << notes;
}

TEST_F(TrainLoop, ARecordingOfAnotherJobIsRefusedBeforeTheFirstStep) {
  auto recorded = job("tp=2", 1);
  recorded.record.folder = (folder_ / "traces").string();
  train(recorded, {});
  recorded.optimizer.lr *= 2;
  TrainEvents events;
  events.on_step = [&](const StepMetrics&) { FAIL(); };
  EXPECT_THROW(train(recorded, events), BadInput);
}

TEST_F(TrainLoop, VerifiesEveryStep) {
  auto verified = job("dp_shard=2,tp=2", 2);
  verified.verify.enable = true;
  verified.numerics.mode = "native";
  int checks = 0;
  TrainEvents events;
  events.on_check = [&](int64_t, const StepCheck& check) {
    ++checks;
    EXPECT_TRUE(check.comparison.agrees());
    EXPECT_GT(check.comparison.gradient, 0);  // two different programs really ran
  };
  const auto outcome = train(verified, events);
  EXPECT_EQ(checks, 2);
  EXPECT_TRUE(outcome.findings.empty());
}

/// Bit by bit, and before each save and at the end once more.
TEST_F(TrainLoop, SavesWhatVerifiedStepsLeft) {
  auto verified = job("dp_shard=2,tp=2", 2);
  verified.verify.enable = true;
  verified.checkpoint.enable = true, verified.checkpoint.interval = 1;
  const auto outcome = train(verified, {});
  EXPECT_TRUE(outcome.findings.empty()) << outcome.findings.at(0);
  EXPECT_THAT(outcome.saved_to, ::testing::HasSubstr("step-2"));
}

TEST_F(TrainLoop, RefusesAFolderItCannotMake) {
  auto bad = job();
  bad.job.dump_folder = "/proc/nowhere";
  EXPECT_THROW(train(bad, {}), FileError);
}

}  // namespace
}  // namespace lockstep::trainer
