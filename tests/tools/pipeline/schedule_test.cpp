#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/tools/golden_report.h"
#include "tests/tools/goldens/bad_calls.h"
#include "tests/tools/run_lockstep.h"

/// `lockstep schedule`, as its users see it.
namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(Schedule, ShowsBubbleActivationsAndPicture) {
  const auto run = run_lockstep("schedule 1f1b --ranks 2 --microbatches 3");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  expect_golden(run.out, R"(1F1B: 2 ranks, 2 stages, 3 microbatches; times F 1, B 2, I 1, W 1, transfer 0; length 12
rank  stages   actions  bubble    gaps  activations
   0  0              6  25.0 %  25.0 %            2
   1  1              6  25.0 %   0.0 %            1
 all                12  25.0 %  25.0 %            2

rank 0  F0F1....B0--F2B1--..B2--
rank 1  ..F0B0--F1B1--F2B2--....
F forward, B backward, and the microbatch
)");
}

TEST(Schedule, ComparesAll) {
  const auto run = run_lockstep("schedule all --ranks 4 --microbatches 6");
  EXPECT_EQ(run.code, 0);
  expect_golden(
      run.out,
      R"(4 ranks, 6 microbatches; times F 1, B 2, I 1, W 1, transfer 0; length and activations of all stages of a rank together
schedule               stages per rank    length  bubble    gaps  activations
GPipe                                1        27  33.3 %  33.3 %            6
1F1B                                 1        27  33.3 %  33.3 %            4
Interleaved1F1B                      2      22.5  20.0 %  20.0 %            6
ZBH1                                 1        21  14.3 %  14.3 %            4
InterleavedZeroBubble                2      19.5   7.7 %   7.7 %            5
ZBVZeroBubble                        2      19.5   7.7 %   5.3 %            4
DualPipeV              DualPipeV needs as many microbatches as stages, 8, to keep both directions busy; there are 6.
)");
}

TEST(Schedule, ReadsTheFileThatItWrites) {
  const TemporaryFolder folder;
  const auto csv = folder.file("schedule.csv");
  const auto written = run_lockstep("schedule DualPipeV --ranks 3 --microbatches 7 --csv " + csv);
  const auto read = run_lockstep("schedule --file " + csv + " --json " + folder.file("read.json"));
  EXPECT_EQ(read.code, 0) << read.err;
  EXPECT_EQ(written.out.substr(written.out.find(':')), read.out.substr(csv.size()));
  const auto json = nlohmann::json::parse(file_content(folder.file("read.json")));
  EXPECT_EQ(json.at("rank_of_stage"), nlohmann::json({0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(json.at("microbatches"), 7);
  EXPECT_EQ(json.at("ranks").size(), 3U);
  EXPECT_EQ(json.at("ranks").at(1).at("most_activations"), 7);
  const auto& first = json.at("ranks").at(2).at("actions").at(0);
  EXPECT_EQ(first.at("action"), "2F0");
  EXPECT_EQ(first.at("begin"), 2.0);
}

TEST(Schedule, SaysWhatOfAFileItLeavesOut) {
  const TemporaryFolder folder;
  const auto csv = folder.write("schedule.csv", "0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  const auto run = run_lockstep("schedule --file " + csv);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\n4 cells of communication are left out: it follows from what actions need\n"));
}

TEST(Schedule, RefusesAFileThatNeverEnds) {
  const TemporaryFolder folder;
  const auto csv = folder.write("schedule.csv", "0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n");
  const auto run = run_lockstep("schedule --file " + csv);
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err,
            "lockstep: " + csv +
                ": never ends: rank 0 waits at 0B0 for 1B0, which rank 1 has behind 1F1; rank 1 waits at 1F1 for "
                "0F1, which rank 0 has behind 0B0. Move one of these actions.\n");
}

TEST(Schedule, DrawsAPageThatIsXml) {
  const TemporaryFolder folder;
  const auto page = folder.file("page.html");
  EXPECT_EQ(run_lockstep("schedule ZBVZeroBubble --ranks 4 --microbatches 8 --html " + page).code, 0);
  const auto html = file_content(page);
  EXPECT_THAT(html, HasSubstr("<h1>ZBVZeroBubble: 4 ranks, 8 stages, 8 microbatches</h1>"));
  EXPECT_THAT(html, HasSubstr("<title>7W7: "));
  const auto parsed = run_binary("python3", "-c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' " + page);
  EXPECT_EQ(parsed.code, 0) << parsed.err;
}

const BadCall kBadCalls[] = {
    {"schedule", 2,
     "lockstep schedule needs a schedule: lockstep schedule 1F1B --ranks 4 --microbatches 8, or lockstep schedule "
     "--file "
     "FILE."},
    {"schedule 1F1B --file x.csv", 2,
     "lockstep schedule needs a name or a file, not both: lockstep schedule 1F1B --ranks 4 --microbatches 8, or "
     "lockstep "
     "schedule --file FILE."},
    {"schedule 1F1B --ranks 4", 2, "--microbatches is needed: how many microbatches the schedule is for."},
    {"schedule 1F1B --microbatches 4", 2, "--ranks is needed: how many ranks the schedule is for."},
    {"schedule --file x.csv --ranks 4", 2,
     "--ranks, --microbatches and --stages-per-rank are what the file says; leave them out."},
    {"schedule all --ranks 4 --microbatches 8 --csv x.csv", 2,
     "--csv and --html are for one schedule; name it instead of all."},
    {"schedule 1F1B --ranks 0 --microbatches 8", 2,
     "--ranks: Value 0 not in range 1 to 4096. 'lockstep schedule --help' tells more."},
    {"schedule 1F2B --ranks 4 --microbatches 8", 2,
     "1F2B is not a pipeline schedule. Did you mean 1F1B? The schedules are GPipe, 1F1B, Interleaved1F1B, ZBH1, "
     "InterleavedZeroBubble, ZBVZeroBubble, DualPipeV."},
    {"schedule 1F1B --ranks 4 --microbatches 8 --times F=0", 2,
     "--times: \"F=0\" is no time. F, B, I, W (from 0.001 to 1000) or T (transfer, from 0), = and a number were "
     "expected, such as "
     "F=1,B=2,I=1,W=1,T=0."},
    {"schedule --file missing.csv", 2,
     "missing.csv: cannot be opened: No such file or directory. A schedule (csv) was expected."},
    {"schedule --file jobs/demo.toml", 2,
     "jobs/demo.toml:1, cell 1: \"# A small Llama 3 learns the King James Bible\" is no action. Stage, F, B, I or W, "
     "and "
     "microbatch were expected, such as 0F1."},
    {"schedule 1F1B --ranks 4 --microbatches 8 --csv missing/x.csv", 5,
     "missing/x.csv: cannot be written: there is no folder missing."},
};

TEST(Schedule, BadCallsSayWhatIsWrongInOneLine) { expect_one_line_each(kBadCalls); }

TEST(Schedule, AllThatAreRefusedAreBadInput) {
  EXPECT_EQ(run_lockstep("schedule all --ranks 4096 --microbatches 65536").code, 2);
}

TEST(Schedule, TimesAreTheUsers) {
  const auto run = run_lockstep("schedule 1F1B --ranks 2 --microbatches 2 --times F=2,B=3,T=1");
  EXPECT_THAT(run.out, HasSubstr("times F 2, B 3, I 1, W 1, transfer 1; length 17\n"));
}

}  // namespace
}  // namespace lockstep
