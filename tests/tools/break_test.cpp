// `lockstep replay --break` from the command line: what it writes, and that its folder holds nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Break : public ::testing::Test {
 protected:
  lockstep::Run train(const std::string& more) {
    return run_lockstep("train " + job_ + " -q --record " + traces_ + " " + more);
  }
  lockstep::Run replay(const std::string& more) { return run_lockstep("replay " + traces_ + " " + more); }
  lockstep::Run break_at(const std::string& op) {
    return replay("--rank 1 --break '" + op + "' --dump " + folder_.file("op"));
  }
  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("op")))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_), traces_ = folder_.file("traces");
};

TEST_F(Break, WritesWhatTheOpTookAndGave) {
  ASSERT_EQ(train("").code, 0);
  const auto run = replay("--rank 1 --step 2 --break 'tok_embeddings, embedding #0' --dump " + folder_.file("op"));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("up to the op that was asked for"), HasSubstr("result.0.npy"),
                             HasSubstr("  stopped   step 2, microbatch 0, forward, tok_embeddings, embedding #0\n")));
  const auto result = file_content(folder_.file("op/result.0.npy"));
  EXPECT_EQ(result.substr(1, 5), "NUMPY");
  EXPECT_THAT(result, HasSubstr("'descr': '<f4', 'fortran_order': False, 'shape': (4, 16, 64), }"));
  EXPECT_EQ(result.size() % 64, 0U);
  EXPECT_THAT(file_content(folder_.file("op/operand.indices.npy")), HasSubstr("'descr': '<i8'"));
  EXPECT_EQ(replay("--rank 1 --until nonsense").code, 2);
}

TEST_F(Break, LeavesItsOwnFilesAlone) {
  ASSERT_EQ(train("--training.steps 1").code, 0);
  ASSERT_EQ(break_at("tok_embeddings, embedding #0").code, 0);
  EXPECT_THAT(left(), ElementsAre("op.h5", "operand.indices.npy", "operand.weight.npy", "result.0.npy"));
  EXPECT_THAT(file_content(folder_.file("op/op.h5")),
              HasSubstr("step 1, microbatch 0, forward, tok_embeddings, embedding #0"));
  ASSERT_EQ(break_at("layers.0, gelu #0").code, 0);
  EXPECT_THAT(left(), ElementsAre("op.h5", "operand.self.npy", "result.0.npy"));
  EXPECT_EQ(break_at("nonsense").code, 2);
  EXPECT_THAT(left(), ElementsAre("op.h5", "operand.self.npy", "result.0.npy")) << "nothing came instead";
  folder_.write("op/notes.txt", "mine");
  const auto refused = break_at("tok_embeddings, embedding #0");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.out, "") << "before the replay";
  EXPECT_THAT(refused.err, HasSubstr("op holds notes.txt, which is of no break"));
  EXPECT_THAT(left(), ElementsAre("notes.txt", "op.h5", "operand.self.npy", "result.0.npy"));
}

}  // namespace
}  // namespace lockstep
