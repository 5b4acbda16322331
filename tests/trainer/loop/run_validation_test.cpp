#include "trainer/loop/run_validation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"
#include "trainer/job/batching.h"
#include "trainer/loop/train_loop.h"

namespace lockstep::trainer {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

class RunValidationTest : public ::testing::Test {
 protected:
  RunValidationTest() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "the cat " + std::to_string(i * i % 97) + " sat on the mat, ";
    folder_.write("text", text);
    folder_.write("other", text.substr(700, 13 * 12 + 1));  // 13 samples: the second batch of 8 is not full
  }

  Job job(const char* mesh, int64_t freq) const {
    Job job;
    job.job.dump_folder = folder_.file("out");
    job.model.name = "mlp";
    job.model.dropout = 0.1;
    job.training.dataset_path = {folder_.file("text")};
    job.training.seq_len = 16;
    job.training.local_batch_size = 4;
    job.training.global_batch_size = 8;
    job.training.steps = 4;
    job.validation.enable = freq > 0;
    job.validation.dataset_path = {folder_.file("other")};
    job.validation.seq_len = 12;
    job.validation.freq = std::max<int64_t>(freq, 1);
    const auto degrees = parse_mesh(mesh);
    set_mesh(job, degrees);
    return resolve(job, {});
  }

  TemporaryFolder folder_;
};

TEST_F(RunValidationTest, LeavesTrainingsBitsAndHasItsOwnOnEveryMesh) {
  const auto without = train(job("one device", 0), {});
  const auto one = train(job("one device", 2), {});
  for (const char* mesh : {"one device", "dp_shard=2", "tp=2", "dp_replicate=2,cp=2"}) {
    const auto with = train(job(mesh, 2), {});
    EXPECT_EQ(with.state_digest, without.state_digest) << mesh;
    for (size_t s = 0; s < 4; ++s) {
      EXPECT_EQ(with.steps[s].loss, without.steps[s].loss) << mesh;
      ASSERT_EQ(with.steps[s].validation.has_value(), s != 2) << mesh << " step " << s + 1;
      if (s != 2) EXPECT_EQ(with.steps[s].validation->loss, one.steps[s].validation->loss) << mesh;
    }
  }
  const auto& last = *one.steps[3].validation;
  EXPECT_EQ(last.tokens, 13 * 12);
  EXPECT_NEAR(last.perplexity, std::exp(last.loss), 1e-9 * last.perplexity);
  EXPECT_NEAR(*last.bits_per_byte, last.loss / std::log(2.0), 1e-12);
  EXPECT_LT(last.loss, one.steps[0].validation->loss);
}

TEST_F(RunValidationTest, TakesAsManyBatchesAsItIsTold) {
  auto job = this->job("one device", 4);
  job.validation.steps = 1;
  EXPECT_EQ(train(job, {}).steps[3].validation->tokens, 8 * 12);
  job.validation.steps = 9;
  EXPECT_EQ(train(job, {}).steps[3].validation->tokens, 13 * 12);
}

TEST_F(RunValidationTest, IsWrittenWithItsStep) {
  std::string notes;
  TrainEvents events;
  events.on_note = [&](const std::string& note) { notes += note + "\n"; };
  train(job("dp_shard=2", 3), events);
  EXPECT_THAT(notes, HasSubstr("step 1/4  validation loss 5."));
  EXPECT_THAT(notes, HasSubstr("step 3/4  validation loss "));
  EXPECT_THAT(notes, HasSubstr("  bits/byte "));
  const auto lines = file_content(folder_.file("out/metrics.jsonl"));
  EXPECT_THAT(lines, HasSubstr("\"validation_loss\":"));
}

TEST_F(RunValidationTest, WhatIsWrongWithItsDataIsNamedAsItsOwn) {
  auto job = this->job("one device", 1);
  job.validation.dataset_path = {folder_.file("none")};
  EXPECT_EQ(message_of<BadInput>([&] { train(job, {}); }),
            "validation: dataset " + folder_.file("none") + ": cannot be opened: No such file or directory.");
  job.validation.dataset_path = {"a", "b"};
  EXPECT_EQ(message_of<BadInput>([&] { train(job, {}); }),
            "validation: validation.dataset_path names 2 files; validation.dataset \"text\" has one, \"tokens\" any "
            "number.");
  job.validation.seq_len = 17;
  EXPECT_EQ(message_of<BadInput>([&] { resolve(job, {}); }),
            "validation.seq_len 17 is longer than training.seq_len 16: the model is built for that.");
}

}  // namespace
}  // namespace lockstep::trainer
