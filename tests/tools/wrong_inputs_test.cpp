// Command lines and files that nobody meant: exit code 0, 2 or 5 within two seconds, an error that is lines of
// "lockstep: ", no signal and no internal error. LOCKSTEP_SOAK tries 1,000 of each kind.
#include <gtest/gtest.h>

#include "core/sanitized.h"
#include "tests/support/mutations.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"
#include "tests/tools/spawned.h"

namespace lockstep {
namespace {

using Words = std::vector<std::string>;

class WrongInputs : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::current_path(before_); }

  int trials() const { return std::getenv("LOCKSTEP_SOAK") ? 1000 : 60; }

  void expect_plain_end(Words words) {
    words.insert(words.begin(), LOCKSTEP_BINARY);
    const auto out = folder_.file("stdout"), err = folder_.file("stderr");
    const int code = Spawned(words, write_to(out), write_to(err)).code(kSanitized ? 20 : 2);
    const auto text = file_content(err);
    ++ends_[code];
    EXPECT_TRUE(code == 0 || code == 2 || code == 5) << code << ": " << text;
    if (code != 0) {
      EXPECT_EQ(text.substr(0, 10), "lockstep: ") << text;
    }
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
  /// Where files go that a wrong command line names.
  std::filesystem::path before_ = std::filesystem::current_path();
  void SetUp() override { std::filesystem::current_path(folder_.path()); }
  std::map<int, int> ends_;  ///< how many runs ended with each code
};

TEST_F(WrongInputs, JobFiles) {
  const auto text = file_content(job_);
  for (int i = 0; i < trials(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    const auto path = folder_.write("wrong.toml", testing::Mutations(static_cast<uint64_t>(i)).changed(text));
    expect_plain_end({"train", path, "--print-job", "-q"});
  }
  EXPECT_GT(ends_[2], trials() / 10);
}

TEST_F(WrongInputs, CommandLines) {
  const Words known = {"train",
                       job_,
                       "verify",
                       "trace",
                       "dump",
                       "ls",
                       "checkpoint",
                       "inspect",
                       "doctor",
                       "--json",
                       "-q",
                       "--help",
                       "launch",
                       "-n",
                       "--meshes",
                       "tp=2",
                       "--training.steps",
                       "rules",
                       "--rank",
                       "replay",
                       "--step",
                       "--",
                       "-",
                       "",
                       folder_.path(),
                       "--case",
                       "--bogus",
                       "=",
                       "--a.b=",
                       "--training.steps=",
                       "diff",
                       "timeline",
                       "report",
                       "--html"};
  for (int i = 0; i < trials(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    testing::Mutations mutations(static_cast<uint64_t>(i));
    Words words{Words{"trace", "checkpoint", "report"}[mutations.below(3)]};
    if (mutations.below(2) == 0) words = {"train", job_, "--print-job", "-q"};
    for (auto more = mutations.below(4) + 1; more > 0; --more) {
      auto word = known[mutations.below(known.size())];
      if (mutations.below(4) == 0) word = mutations.changed(word);
      if (mutations.below(4) == 0) word = mutations.number();
      words.push_back(word.substr(0, word.find('\0')));
    }
    expect_plain_end(words);
  }
  EXPECT_GT(ends_[2], trials() / 10);
}

TEST_F(WrongInputs, Overrides) {
  const Words keys = {"training.steps",
                      "training.seq_len",
                      "optimizer.lr",
                      "optimizer.eps",
                      "debug.seed",
                      "model.width",
                      "comm.init_timeout_seconds",
                      "lr_scheduler.total_steps",
                      "training.max_norm",
                      "checkpoint.load_step",
                      "training.local_batch_size",
                      "training.global_batch_size",
                      "parallelism.tensor_parallel_degree",
                      "record.payload"};
  for (int i = 0; i < trials(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(i));
    testing::Mutations mutations(static_cast<uint64_t>(i));
    Words words{"train", job_, "--print-job", "-q"};
    for (int k = 0; k < 2; ++k)
      words.push_back("--" + keys[mutations.below(keys.size())] + "=" + std::string(mutations.number()));
    expect_plain_end(words);
  }
  EXPECT_GT(ends_[0], 0);
  EXPECT_GT(ends_[2], trials() / 10);
}

}  // namespace
}  // namespace lockstep
