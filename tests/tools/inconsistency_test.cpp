// Exit code 3, end to end: the shipped `lockstep` with an engine that has a fault on one rank (planted_faults.cpp), and
// the whole text of what it reports. A report that differs is printed in full, to be read and pasted into its golden
// header if it is right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tests/replay/view/well_formed.h"
#include "tests/tools/golden_report.h"
#include "tests/tools/goldens/native.h"
#include "tests/tools/goldens/train.h"
#include "tests/tools/goldens/wrong_gradient.h"
#include "tests/tools/goldens/wrong_reduction.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOneThread = "OMP_NUM_THREADS=1 ";
/// The numbers were written when parameters of one dimension never decayed.
constexpr const char* kWithoutDecay = " --optimizer.decay_1d false ";

class PlantedFault : public ::testing::Test {
 protected:
  static lockstep::Run run(const std::string& fault, const std::string& arguments) {
    return run_binary(LOCKSTEP_FAULTY_BINARY, arguments, kOneThread + ("LOCKSTEP_PLANTED_FAULT='" + fault + "' "));
  }
  static lockstep::Run run_shipped(const std::string& arguments) { return run_lockstep(arguments, kOneThread); }

  std::string verify(const std::string& more) const {
    return "verify " + job_ + kWithoutDecay + "--json " + folder_.file("result.json") + " " + more;
  }
  std::string train(const std::string& more) const {
    return "train " + job_ + kWithoutDecay + "--json " + folder_.file("result.json") +
           " --checkpoint.enable true --checkpoint.interval 1 " + more;
  }

  /// Begins with a line of its own, as the golden texts do.
  std::string report(const lockstep::Run& run) const {
    const bool has_result = std::filesystem::exists(folder_.file("result.json"));
    const auto text = "\nexit code " + std::to_string(run.code) + "\n--- standard output\n" + run.out +
                      "--- standard error\n" + run.err + "--- result.json\n" +
                      (has_result ? file_content(folder_.file("result.json")) : "none\n") + "--- files\n" +
                      files_below(folder_.path(), {"out", "traces"});
    return without_measurements(text, folder_);
  }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

// The same executables without a fault: what the tests below find is not of their own making.

TEST_F(PlantedFault, NoneIsTheShippedLockstep) {
  const auto command = verify("--meshes 'tp=2; dp_shard=2'");
  const auto with_none = run("", command);
  EXPECT_EQ(with_none.code, 0) << with_none.err;
  EXPECT_THAT(with_none.out, Not(HasSubstr("DIFFERS")));
  EXPECT_THAT(with_none.out, HasSubstr("\nthese meshes came to "));
  EXPECT_THAT(with_none.out, HasSubstr(" of 10 kinds of move,\n3 of 5 collectives; not to\n"));
  EXPECT_THAT(with_none.out, HasSubstr("\n  collectives  all_to_all; transfer\n"));
  const auto ours = report(with_none);
  EXPECT_EQ(ours, report(run_shipped(command)));
}

TEST_F(PlantedFault, NoneLetsTrainingVerifyEveryStep) {
  const auto with_none = run("", train("--verify"));
  EXPECT_EQ(with_none.code, 0) << with_none.err;
  EXPECT_THAT(with_none.out, HasSubstr("verified  4 steps on dp_shard=2 beside one device, bit by bit: 0 bits differ"));
  const auto ours = report(with_none);
  std::filesystem::remove_all(folder_.file("out"));
  EXPECT_EQ(ours, report(run_shipped(train("--verify"))));
}

TEST_F(PlantedFault, MustBeOneThatExists) {
  const auto misspelt = run("wrong gradiant", verify(""));
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_EQ(misspelt.out.find("agrees"), std::string::npos);
}

// lockstep verify

TEST_F(PlantedFault, OfAGradientReductionIsReportedByVerify) {
  expect_golden(report(run("wrong reduction", verify("--meshes 'tp=2; dp_shard=2'"))), kWrongReductionReport);
}

/// A wrong result may show as an error of LibTorch's. What was found before it is there.
TEST_F(PlantedFault, ThatIsAnErrorNamesMeshAndStepAndLosesNothing) {
  const auto broken = run("wrong sizes", verify("-q --meshes 'one device; dp_shard=2; tp=2'"));
  EXPECT_EQ(broken.code, 1) << broken.out;
  EXPECT_THAT(broken.err, HasSubstr("lockstep: mesh dp_shard=2, step 2: LibTorch: shape '[-1, 7919]' is invalid"));
  const auto json = nlohmann::json::parse(file_content(folder_.file("result.json")));
  EXPECT_EQ(json["planned"], 3);
  EXPECT_EQ(json["finished"], false);
  EXPECT_TRUE(json["verdict"].is_null()) << json["verdict"];
  EXPECT_THAT(json["ended_by"].get<std::string>(), ::testing::StartsWith("mesh dp_shard=2, step 2: LibTorch: "));
  ASSERT_EQ(json["meshes"].size(), 1U);
  EXPECT_EQ(json["meshes"][0]["verdict"], "pass");
  EXPECT_GT(json["coverage"]["rules"]["reached"], 20);
}

TEST_F(PlantedFault, ThatIsAnErrorOfTrainingNamesMeshAndStep) {
  const auto broken = run("wrong sizes", train("-q --verify"));
  EXPECT_EQ(broken.code, 1) << broken.out;
  EXPECT_THAT(broken.err, HasSubstr("lockstep: mesh dp_shard=2, step 2: LibTorch: shape '[-1, 7919]' is invalid"));
}

/// A collective has no case of its own: the step is made again.
TEST_F(PlantedFault, OfACollectiveIsThereAgainByTheCommandThatIsNamed) {
  const auto page = folder_.file("page.html");
  const auto command = "verify " + job_ + " --meshes dp_shard=2 --verify.steps 1";
  ASSERT_EQ(run("wrong reduction",
                "verify " + job_ + " -q --verify.steps 3 --html " + page + " --json " + folder_.file("result.json"))
                .code,
            3);
  const auto json = nlohmann::json::parse(file_content(folder_.file("result.json")));
  EXPECT_EQ(json["meshes"][0]["findings"][0]["next"], "lockstep " + command);
  EXPECT_THAT(file_content(page), AllOf(HasSubstr("<h4>Next</h4>\n<pre>lockstep " + command + "</pre>"),
                                        HasSubstr("reduce_scatter on axis dp_shard, among ranks 0-1")));
  const auto again = run("wrong reduction", command);
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.out, HasSubstr("\n  again    lockstep " + command + "\n"));
  EXPECT_EQ(run_shipped(command).code, 0);
}

TEST_F(PlantedFault, OfACollectiveOfTrainingNamesTheRecordingToLookAt) {
  const auto found = run("wrong reduction", train("-q --verify"));
  EXPECT_EQ(found.code, 3);
  EXPECT_THAT(found.out, HasSubstr("\n  again    lockstep train " + job_));
  EXPECT_THAT(found.out, HasSubstr(" --verify --record traces; lockstep replay traces --rank 1 --step 1\n  resume   "));
  std::filesystem::remove_all(folder_.file("out"));
  const auto traces = folder_.file("traces");
  const auto recorded = run("wrong reduction", train("-q --verify --record " + traces));
  const auto replay = "replay " + traces + " --rank 1 --step 1";
  EXPECT_THAT(recorded.out, HasSubstr("\n  again    lockstep " + replay + "\n  resume   "));
  EXPECT_EQ(run("wrong reduction", replay).code, 0) << "the fault comes again";
  EXPECT_EQ(run_shipped(replay).code, 3) << "and not without it";
}

/// After the last step: what the run ends with is not what its last checked step left.
TEST_F(PlantedFault, BetweenTheLastSaveAndTheEndIsFound) {
  for (const char* numerics : {"canonical", "native"}) {
    const auto found = run("write behind a save", train(std::string("-q --verify --numerics.mode ") + numerics));
    EXPECT_EQ(found.code, 3) << numerics << found.out << found.err;
    EXPECT_THAT(found.out, HasSubstr("INCONSISTENT  ")) << numerics;
    std::filesystem::remove_all(folder_.file("out"));
  }
}

TEST_F(PlantedFault, OfAnOpIsBlamedOnIt) {
  expect_golden(report(run("wrong gradient", verify(""))), kWrongGradientReport);
}

/// What the report says to run differs where the fault is, and nowhere else.
TEST_F(PlantedFault, OfAnOpIsThereAgainInItsCase) {
  ASSERT_EQ(run("wrong gradient", verify("-q")).code, 3);
  const auto again = "replay --json " + folder_.file("result.json") + " --case " + folder_.file("out/case-1.h5");
  expect_golden(report(run("wrong gradient", again)), kWrongGradientCase);
  const auto elsewhere = run_shipped(again);
  EXPECT_EQ(elsewhere.code, 0) << elsewhere.out;
  EXPECT_THAT(elsewhere.out, HasSubstr("as on one device, bit by bit"));
}

TEST_F(PlantedFault, IsOnThePage) {
  const auto page = folder_.file("page.html");
  EXPECT_EQ(run("wrong gradient", verify("-q --meshes 'tp=2; dp_shard=2' --html " + page)).code, 3);
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("mesh::weight_gradient</h3>"), HasSubstr("do what one device does."),
                          HasSubstr("output (to blame)"), HasSubstr("out/case-1.h5</pre>")));
}

TEST_F(PlantedFault, ThatEndsVerificationLeavesAPage) {
  const auto page = folder_.file("page.html");
  EXPECT_EQ(run_shipped(verify("-q --optimizer.lr 1e30 --html " + page)).code, 3);
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("It ended before it was done"), HasSubstr("not both finite")));
}

TEST_F(PlantedFault, OfTrainingIsOnThePage) {
  const auto page = folder_.file("page.html");
  EXPECT_EQ(run("wrong update", train("--verify -q --html " + page)).code, 3);
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("dp_shard=2 does not do what one device does."), HasSubstr("mesh::adamw</h3>"),
                          HasSubstr("out/case-1.h5</pre>"), HasSubstr("INCONSISTENT  step 2, mesh dp_shard=2")));
}

/// What the mesh sends does not wait for a step that ends well.
TEST_F(PlantedFault, ThatEndsTrainingLeavesAPageWithItsCollectives) {
  const auto page = folder_.file("page.html");
  EXPECT_EQ(run_shipped(train("--verify -q --optimizer.lr 1e30 --html " + page)).code, 3);
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("It ended before it was done"), HasSubstr("not both finite"),
                          HasSubstr("reduce_scatter on dp_shard"), HasSubstr("A rank holds ")));
}

// lockstep train --verify

TEST_F(PlantedFault, OfAnUpdateEndsTrainingAtItsStep) {
  const auto command = train("--verify --record " + folder_.file("traces") + " --record.payload ring:2");
  expect_golden(report(run("wrong update", command)), kWrongUpdateReport);
}

/// Without --verify, too: copies of a parameter that one rank updates otherwise are no longer the same.
TEST_F(PlantedFault, OfOneCopyOfAParameterEndsTrainingAtItsStep) {
  const std::string replicas = " --parallelism.data_parallel_replicate_degree 2";
  const auto found = run("wrong update", train("-q --parallelism.data_parallel_shard_degree 1" + replicas));
  EXPECT_EQ(found.code, 3);
  EXPECT_THAT(found.out, HasSubstr("INCONSISTENT  step 2, mesh dp_replicate=2: copies of tok_embeddings.weight["));
  EXPECT_THAT(found.out, HasSubstr("16384 of 16384 elements wrong, on rank 1: times 1.001, everywhere)\n"
                                   "  before   all copies agreed after the step before\n  again    "));
}

/// What was right before it is what the next run goes on from.
TEST_F(PlantedFault, OfAnUpdateIsNotInTheCheckpointThatIsKept) {
  ASSERT_EQ(run("wrong update", train("--verify -q")).code, 3);
  const auto rest = run_shipped(train("-q"));
  EXPECT_EQ(rest.code, 0) << rest.err;
  const auto resumed = file_content(folder_.file("result.json"));
  EXPECT_THAT(resumed, AllOf(Not(HasSubstr("\"step\": 1,")), HasSubstr("\"step\": 2,"))) << "goes on with step 2";
  std::filesystem::remove_all(folder_.file("out"));
  EXPECT_EQ(run_shipped(train("-q")).code, 0);
  const auto digest_in = [](const std::string& json) { return json.substr(json.find("\"state_digest\""), 52); };
  EXPECT_EQ(digest_in(resumed), digest_in(file_content(folder_.file("result.json"))));
}

// Native numerics: float64 and a bound.

TEST_F(PlantedFault, BeyondTheBoundOfNativeNumericsIsReported) {
  const auto found = run("wrong update", verify("--numerics.mode native"));
  // Of its other ops some libraries round as float64 does, and some do not.
  const std::regex none("\"worst_error_over_bound\": ROUNDING");
  const auto text = std::regex_replace(to_three_digits(report(found)), none, "\"worst_error_over_bound\": WITHIN");
  expect_golden(text, kNativeReport);
}

TEST_F(PlantedFault, WithinTheBoundOfNativeNumericsIsNone) {
  const auto found = run("update within bound", verify("--numerics.mode native"));
  EXPECT_EQ(found.code, 0) << found.out;
  EXPECT_THAT(found.out, HasSubstr("agrees"));
}

TEST_F(PlantedFault, BeyondTheBoundEndsNativeTraining) {
  const auto found = run("wrong update", train("--verify -q --numerics.mode native"));
  EXPECT_EQ(found.code, 3) << found.out;
  EXPECT_THAT(found.out, HasSubstr("INCONSISTENT  step 2, mesh dp_shard=2: parameter of tok_embeddings.weight["));
  EXPECT_FALSE(std::filesystem::exists(folder_.file("out/checkpoint/step-2")));
}

// NaN

// mode ops: without a second step beside it

TEST_F(PlantedFault, OfAnOpIsSeenByModeOps) {
  for (const char* numerics : {"canonical", "native"}) {
    const auto found = run("wrong gradient", train("--verify --verify.modes ops --verify.sample 1 --numerics.mode " +
                                                   std::string(numerics)));
    EXPECT_EQ(found.code, 3) << found.out << found.err;
    EXPECT_THAT(found.out,
                AllOf(HasSubstr("INCONSISTENT  step 1, mesh dp_shard=2: result of mesh::weight_gradient["),
                      HasSubstr("  op       step 1, microbatch 0, backward, output, mesh::weight_gradient #0\n"),
                      HasSubstr(" moves, compared with one device each, agree\n  again    lockstep replay --case ")));
    const auto again = "replay --case " + folder_.file("out/case-1.h5");
    EXPECT_EQ(run("wrong gradient", again).code, 3);
    EXPECT_EQ(run_shipped(again).code, 0) << run_shipped(again).out;
    std::filesystem::remove_all(folder_.file("out"));
  }
}

/// A sample finds in later steps what it has missed.
TEST_F(PlantedFault, OfAnOpComesIntoTheSample) {
  const auto found = run("wrong gradient", train("--verify --verify.modes ops --verify.sample 5 --training.steps 40"));
  EXPECT_EQ(found.code, 3) << found.out << found.err;
  EXPECT_THAT(found.out, HasSubstr("mesh::weight_gradient #0\n"));
}

TEST_F(PlantedFault, ThatGivesNanNamesTheOp) { expect_golden(report(run("NaN", train(""))), kNanReport); }

/// One device has none: a finding, with the op's case.
TEST_F(PlantedFault, ThatGivesNanIsAFindingOfVerification) {
  expect_golden(report(run("NaN", train("--verify"))), kNanFinding);
}

}  // namespace
}  // namespace lockstep
