// Standard streams that cannot be written: closed (`>&-`), full, or a pipe whose reader has gone. Work is finished and
// files are written whatever becomes of the text; the exit code is 5 if results are lost, and the command's own if
// nobody wants them, or only stderr is concerned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"
#include "tests/tools/spawned.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

FileDescriptor full() { return write_to("/dev/full"); }
FileDescriptor closed() { return {}; }

class Outputs : public ::testing::Test {
 protected:
  struct End {
    int code;
    std::string out, err;
  };

  End end_of(Words words, const FileDescriptor& out, const FileDescriptor& err) const {
    words.insert(words.begin(), LOCKSTEP_BINARY);
    const int code = Spawned(words, out, err).code(60);
    return {code, file_content(folder_.file("out.txt")), file_content(folder_.file("err.txt"))};
  }
  FileDescriptor out_file() const { return write_to(folder_.file("out.txt")); }
  FileDescriptor err_file() const { return write_to(folder_.file("err.txt")); }

  /// All of them print results, and end with exit code 0.
  void expect_whole_work(const Words& words) {
    SCOPED_TRACE(words.front() + " " + words.back());
    const auto plain = end_of(words, out_file(), err_file());
    ASSERT_EQ(plain.code, 0) << plain.err;
    ASSERT_FALSE(plain.out.empty());
    expect_lost(end_of(words, full(), err_file()), "No space left on device");
    expect_lost(end_of(words, closed(), err_file()), "Bad file descriptor");
    const auto unread = end_of(words, without_reader(), err_file());
    EXPECT_EQ(unread.code, 0) << unread.err;
    EXPECT_EQ(unread.err.find("lockstep: "), std::string::npos) << unread.err;
    for (const auto& err : {full, closed, without_reader}) EXPECT_EQ(end_of(words, out_file(), err()).code, 0);
    EXPECT_EQ(end_of(words, full(), full()).code, 5);
  }

  static void expect_lost(const End& end, const std::string& reason) {
    EXPECT_EQ(end.code, 5) << end.err;
    EXPECT_THAT(end.err, HasSubstr("lockstep: standard output cannot be written: " + reason +
                                   ". The results above are not complete.\n"));
  }

  Words train(const std::string& more, const std::string& value) const { return {"train", job_, more, value}; }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_), traces_ = folder_.file("traces");
};

TEST_F(Outputs, OfCommandsThatNeedNoTensor) {
  for (const Words& words : {Words{"--help"}, {"train", "--help"}, {"doctor"}, {"train", job_, "--print-job"}})
    expect_whole_work(words);
}

TEST_F(Outputs, OfCheckpointsAndRecordings) {
  ASSERT_EQ(
      end_of({"train", job_, "-q", "--checkpoint.enable", "true", "--record", traces_}, out_file(), err_file()).code,
      0);
  for (const Words& words : {Words{"checkpoint", "inspect", folder_.file("out/checkpoint/step-4")},
                             {"trace", "ls", traces_},
                             {"trace", "dump", traces_},
                             {"trace", "diff", traces_, traces_},
                             {"trace", "timeline", traces_, "--html", folder_.file("page.html")},
                             {"report", folder_.file("out")},
                             {"replay", traces_, "--rank", "1"}})
    expect_whole_work(words);
}

TEST_F(Outputs, OfCommandsWithTensors) {
  for (const Words& words : {Words{"rules"},
                             {"train", job_},
                             {"train", job_, "--dry-run"},
                             {"verify", job_, "--verify.steps", "1"},
                             {"bench", "numerics", "--rows", "add_512x768", "--seconds", "0"},
                             {"launch", "-n", "2", "train", job_}})
    expect_whole_work(words);
}

TEST_F(Outputs, AnErrorThatNobodyReadsKeepsItsCode) {
  for (const auto& err : {full, closed, without_reader}) {
    EXPECT_EQ(end_of({"trian", job_}, out_file(), err()).code, 2);
    EXPECT_EQ(end_of(train("--model.flavor", "9B"), out_file(), err()).code, 2);
    EXPECT_EQ(end_of({"launch", "-n", "3", "train", job_}, out_file(), err()).code, 2);
  }
}

TEST_F(Outputs, FilesAreWrittenWithoutTheTextOfClosedStreams) {
  const auto json = folder_.file("result.json");
  const auto end = end_of({"train", job_, "--json", json, "--checkpoint.enable", "true"}, closed(), closed());
  EXPECT_EQ(end.code, 5);
  EXPECT_EQ(nlohmann::json::parse(file_content(json)).at("steps").size(), 4U);
  EXPECT_EQ(end_of({"checkpoint", "inspect", folder_.file("out/checkpoint/step-4")}, out_file(), err_file()).code, 0);
  EXPECT_EQ(run_lockstep("train " + folder_.file("out/job.toml") + " --print-job -q").code, 0) << "job.toml is whole";
}

TEST_F(Outputs, AFailedLaunchReportsToItsFile) {
  const auto json = folder_.file("many.json");
  EXPECT_EQ(end_of({"launch", "-n", "3", "--json", json, "train", job_}, full(), full()).code, 2);
  EXPECT_EQ(nlohmann::json::parse(file_content(json)).at("ranks").size(), 3U);
}

}  // namespace
}  // namespace lockstep
