// Whole runs of the binary: results, exit codes, and what is left on the disk when something goes wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/sanitized.h"
#include "tests/replay/view/well_formed.h"
#include "tests/tools/run_lockstep.h"
#include "tests/tools/small_job.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class Runs : public ::testing::Test {
 protected:
  lockstep::Run train(const std::string& more = "", const std::string& variables = "") {
    return run_lockstep("train " + job_ + " -q --json " + folder_.file("result.json") + " " + more, variables);
  }
  nlohmann::json result() const { return nlohmann::json::parse(file_content(folder_.file("result.json"))); }

  TemporaryFolder folder_;
  std::string job_ = write_small_job(folder_);
};

TEST_F(Runs, TrainWritesItsSteps) {
  const auto run = train("--verify");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = result();
  ASSERT_EQ(json.at("steps").size(), 4u);
  for (const char* key : {"step", "loss", "grad_norm", "tokens_per_second", "checked_tokens_per_second"})
    EXPECT_TRUE(json.at("steps")[0].contains(key)) << key;
  EXPECT_EQ(json.at("steps")[0].at("step"), 1);
  EXPECT_EQ(json.at("state_digest").get<std::string>().size(), 32u);
  EXPECT_TRUE(json.at("findings").empty());
}

/// Of steps that are checked, every second one here, the time includes the check.
TEST_F(Runs, TrainTellsBothSpeedsOfCheckedSteps) {
  ASSERT_EQ(train("--verify --verify.every 2").code, 0);
  const auto steps = result().at("steps");
  for (const size_t checked : {0U, 2U})
    EXPECT_LT(steps[checked].at("checked_tokens_per_second"), steps[checked].at("tokens_per_second"));
  for (const size_t unchecked : {1U, 3U}) EXPECT_TRUE(steps[unchecked].at("checked_tokens_per_second").is_null());
  const auto lines = run_lockstep("train " + job_ + " --verify --verify.every 2");
  EXPECT_THAT(lines.out, AllOf(ContainsRegex("step 1/4 .* tokens/s checked  [0-9]+ MiB peak "),
                               ContainsRegex("step 4/4 .* tokens/s  [0-9]+ MiB peak "),
                               ContainsRegex("speed +[0-9,]+ tokens/s on the mesh alone, [0-9,]+ with one device")));
}

TEST_F(Runs, VerifyWritesAVerdictPerMesh) {
  const auto run = run_lockstep("verify " + job_ + " --numerics.mode native --meshes 'tp=2; dp_shard=2,tp=3' --json " +
                                folder_.file("v.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(file_content(folder_.file("v.json")));
  EXPECT_EQ(json.at("verdict"), "pass");
  ASSERT_EQ(json.at("meshes").size(), 2u);
  const auto& mesh = json.at("meshes")[1];
  EXPECT_EQ(mesh.at("mesh"), "dp_shard=2,tp=3");
  EXPECT_EQ(mesh.at("verdict"), "pass");
  EXPECT_EQ(mesh.at("domain"), "float64");
  for (const char* key : {"loss_max_relative", "grad_max_relative", "parameter_max_relative"})
    EXPECT_LT(mesh.at(key).get<double>(), 1e-9) << key;
  EXPECT_GT(mesh.at("bytes_per_step").get<double>(), 0);
  EXPECT_THAT(run.out, HasSubstr("agrees"));
}

TEST_F(Runs, VerifyComparesBitsByDefault) {
  const auto run =
      run_lockstep("verify " + job_ + " --bitwise --meshes 'tp=2; dp_shard=2,tp=3' --json " + folder_.file("v.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto result = nlohmann::json::parse(file_content(folder_.file("v.json")));
  for (const auto& mesh : result.at("meshes")) {
    EXPECT_EQ(mesh.at("verdict"), "pass");
    EXPECT_EQ(mesh.at("numerics"), "canonical");
    EXPECT_EQ(mesh.at("differing_bits"), 0);
    EXPECT_EQ(mesh.at("threads"), 1);
  }
  EXPECT_THAT(run.out, HasSubstr("bit by bit"));
}

TEST_F(Runs, VerifyWritesAPage) {
  const auto page = folder_.file("page.html"), command = "verify " + job_ + " -q --meshes 'tp=2; dp_shard=2,tp=3' ";
  const auto with_page = run_lockstep(command + "--html " + page + " --json " + folder_.file("with.json"));
  ASSERT_EQ(with_page.code, 0) << with_page.err;
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("All 2 meshes do what one device does."), HasSubstr(" steps compared bit by bit"),
                          HasSubstr("all_reduce on tp"), HasSubstr("reduce_scatter on dp_shard")));
  EXPECT_THAT(html, AllOf(HasSubstr("lockstep verify " + job_ + " --meshes &#39;tp=2; dp_shard=2,tp=3&#39;"),
                          HasSubstr("A rank holds "), HasSubstr("This process, with all that it compares, held ")));
  ASSERT_EQ(run_lockstep(command + "--json " + folder_.file("without.json")).code, 0);
  EXPECT_EQ(file_content(folder_.file("with.json")), file_content(folder_.file("without.json")));
}

TEST_F(Runs, VerifyWritesAPageOfNativeNumerics) {
  const auto page = folder_.file("page.html");
  ASSERT_EQ(run_lockstep("verify " + job_ + " -q --numerics.mode native --html " + page).code, 0);
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("does what one device does."), HasSubstr(" steps compared in float64"),
                          HasSubstr("reduce_scatter on dp_shard"), Not(HasSubstr("canonical</span>"))));
}

TEST_F(Runs, TrainingWritesAPageOfItsVerification) {
  const auto page = folder_.file("page.html");
  const auto run = train("--verify --html " + page);
  ASSERT_EQ(run.code, 0) << run.err;
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("does what one device does."), HasSubstr("4 steps compared bit by bit"),
                          HasSubstr("reduce_scatter on dp_shard")));
}

/// Of a run that was killed the page says what had been planned and compared by then.
TEST_F(Runs, ThatAreKilledLeaveTheirPage) {
  const auto page = folder_.file("page.html");
  const auto script =
      folder_.write("kill.sh", "'" LOCKSTEP_BINARY "' train " + job_ + " -q --verify --html " + page +
                                   " --training.steps 100000 & pid=$!\nuntil grep -q on.dp_shard " + page +
                                   " 2>/dev/null; do kill -0 $pid || exit 1; sleep 0.01; done\n"
                                   "kill -9 $pid\n");
  ASSERT_EQ(run_binary("/bin/sh", script).code, 0);
  const auto html = file_content(page);
  EXPECT_EQ(testing::fault_of(html), "");
  EXPECT_THAT(html, AllOf(HasSubstr("dp_shard=2: no difference so far."), HasSubstr("reduce_scatter on dp_shard"),
                          HasSubstr("A rank holds "), Not(HasSubstr(">0 B<"))));
}

TEST_F(Runs, ADivergingRunNamesItsFirstBadOp) {
  const auto run = train("--optimizer.lr 1e30");
  EXPECT_EQ(run.code, 3);
  EXPECT_THAT(run.err, HasSubstr("the first op with a NaN or an infinity is step "));
}

TEST_F(Runs, ASignalSavesAndTheSameJobGoesOn) {
  const auto whole = train("--training.steps 1000");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const auto digest = result().at("state_digest");
  std::filesystem::remove_all(folder_.file("out"));
  // The signal comes once five steps are on record, long before the last one.
  const auto script =
      folder_.write("stop.sh", "'" LOCKSTEP_BINARY "' train " + job_ + " -q --training.steps 1000 & pid=$!\n" +
                                   "until [ \"$(wc -l <'" + folder_.file("out") +
                                   "/metrics.jsonl' 2>/dev/null || echo 0)\" -ge 5 ]; do sleep 0.01; done\n" +
                                   "kill -TERM $pid\nwait $pid\n");
  const auto stopped = run_binary("/bin/sh", script);
  EXPECT_EQ(stopped.code, 6) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("SIGTERM: stopped after step "));
  const auto rest = train("--training.steps 1000 --checkpoint.enable true");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(result().at("state_digest"), digest);
}

TEST_F(Runs, ATruncatedCheckpointIsNamedAndLeftAlone) {
  ASSERT_EQ(train("--training.steps 2 --checkpoint.enable true").code, 0);
  std::string damaged;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.file("out")))
    if (entry.path().extension() == ".safetensors") {
      damaged = entry.path().string();
      std::filesystem::resize_file(entry.path(), entry.file_size() / 2);
    }
  ASSERT_FALSE(damaged.empty());
  const auto run = train("--checkpoint.enable true");
  EXPECT_EQ(run.code, 5);
  EXPECT_THAT(run.err, HasSubstr(damaged));
  EXPECT_TRUE(std::filesystem::exists(damaged));
}

TEST_F(Runs, AFullDiskIsAnErrorAndKeepsTheOldCheckpoint) {
  ASSERT_EQ(train("--training.steps 2 --lr_scheduler.total_steps 4 --checkpoint.enable true").code, 0);
  // ThreadSanitizer maps a file of its own of TMPDIR at the start, which the limit would cut.
  const auto program =
      "ulimit -f 100; TMPDIR=/nowhere exec '" LOCKSTEP_BINARY "' train " + job_ + " -q --checkpoint.enable true";
  const auto run = run_binary("/bin/sh", "-c \"" + program + "\"");
  EXPECT_EQ(run.code, 5) << run.err;
  EXPECT_THAT(run.err, HasSubstr("File too large"));
  EXPECT_EQ(train("--checkpoint.enable true").code, 0);  // goes on from step 2
  EXPECT_EQ(result().at("steps")[0].at("step"), 3);
}

TEST_F(Runs, ADryRunNeedsNoMemoryForItsModel) {
  const auto run =
      run_lockstep("train " + job_ +
                   " -q --dry-run --model.name llama3 --model.flavor 405B --parallelism.tensor_parallel_degree 8 "
                   "--parallelism.data_parallel_shard_degree 64 --json " +
                   folder_.file("dry.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(file_content(folder_.file("dry.json"))).at("parameters"), 405853388800);
}

/// Of processes that have ended.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST_F(Runs, ADryRunOf8192RanksTakesSeconds) {
  const double before = processor_seconds();
  const auto run =
      run_lockstep("train " + job_ +
                   " -q --dry-run --model.name llama3 --model.flavor 405B --parallelism.tensor_parallel_degree 8 "
                   "--parallelism.data_parallel_shard_degree 1024 --training.global_batch_size 8192 "
                   "--training.local_batch_size 2 --json " +
                   folder_.file("dry.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  if (!kSanitized) EXPECT_LT(processor_seconds() - before, 10);
  const auto classes = nlohmann::json::parse(file_content(folder_.file("dry.json"))).at("classes");
  size_t ranks = 0;
  for (const auto& each : classes) ranks += each.at("ranks").size();
  EXPECT_EQ(ranks, 8192u);
}

/// A dry run goes on with what a run refuses.
TEST_F(Runs, SaysWhatOfTorchtitansKeysIsNotHonoured) {
  const std::string words = "train " + job_ + " --compile.enable true --training.dtype bfloat16 --training.steps 1";
  const auto dry = run_lockstep(words + " --dry-run --json " + folder_.file("dry.json"));
  EXPECT_EQ(dry.code, 0);
  EXPECT_THAT(dry.err,
              HasSubstr("not honoured: command line: compile.enable = true: kernels are fused already, nothing "
                        "is compiled\n"));
  EXPECT_THAT(dry.err, HasSubstr("not honoured, a run refuses it: command line: training.dtype = bfloat16\n"));
  const auto rows = nlohmann::json::parse(file_content(folder_.file("dry.json"))).at("not_honoured");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], nlohmann::json::parse(R"({"key":"compile.enable","value":"true","where":"command line","instead":)"
                                           R"("kernels are fused already, nothing is compiled","refused":false})"));
  EXPECT_EQ(rows[1].at("refused"), true);
  EXPECT_EQ(run_lockstep(words).code, 2);
  const auto run = run_lockstep(words + " --training.dtype float32 -q");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("not honoured: command line: compile.enable = true")) << "though it is quiet";
}

TEST_F(Runs, ADryRunTellsRanksWithDifferentShardsApart) {
  const auto run = run_lockstep("train " + job_ +
                                " -q --dry-run --numerics.mode native --model.name llama3 --model.flavor 405B "
                                "--training.global_batch_size 336 "
                                "--parallelism.tensor_parallel_degree 6 --parallelism.data_parallel_shard_degree 84 "
                                "--json " +
                                folder_.file("dry.json"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\n0-3,6-9,12-15...   332  13804.599"));
  std::istringstream table(run.out.substr(run.out.find("\naxis") + 1));
  for (std::string line; std::getline(table, line);) EXPECT_LE(line.size(), 80u) << line;
  const auto classes = nlohmann::json::parse(file_content(folder_.file("dry.json"))).at("classes");
  size_t ranks = 0;
  for (const auto& each : classes) ranks += each.at("ranks").size();
  EXPECT_EQ(ranks, 84u * 6);
  EXPECT_EQ(classes[0].at("ranks").size(), 332u);
  EXPECT_NEAR(classes[0].at("state_bytes").get<double>(), 13804.599 * (1 << 20), 1 << 10);
  EXPECT_EQ(classes[0].at("sent")[0].at("collective"), "all_gather");
}

TEST_F(Runs, AnUnknownFlavorIsRefused) {
  const auto run = train("--model.name llama3 --model.flavor 9B");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err,
            "lockstep: model.flavor 9B is not known for llama3; choose one of debugmodel, 1B, 3B, 8B, 70B, 405B\n");
}

TEST_F(Runs, LogitsThatAllRanksHoldAreCountedOfEach) {
  const auto run = train(
      "--training.local_batch_size 10000000 --parallelism.tensor_parallel_degree 2 "
      "--parallelism.disable_loss_parallel true");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr(", 610 for a microbatch's logits; there are "));
}

/// Before it is made: a process that takes more than there is is killed, and says nothing.
TEST_F(Runs, WhatNoMachineHoldsIsRefusedAtOnce) {
  const auto large = train("--model.name llama3 --model.flavor 405B");  // 16 bytes for each of 405,853,388,800
  EXPECT_THAT(large.err, HasSubstr(" GiB: 6048 for parameters, gradients and optimizer state of its ranks, 0 for a "));
  for (const auto* too_much : {"--model.width 1048576", "--training.local_batch_size 10000000"}) {
    const auto start = std::chrono::steady_clock::now();
    const auto run = train(too_much);
    EXPECT_EQ(run.code, 2);
    EXPECT_THAT(run.err, ::testing::StartsWith("lockstep: this process would need more than "));
    // 4 bytes for each of 2 ranks' samples, their 16 tokens and 256 entries of the vocabulary.
    if (too_much == std::string_view("--training.local_batch_size 10000000"))
      EXPECT_THAT(run.err, HasSubstr(", 305 for a microbatch's logits; there are "));
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(kSanitized ? 20 : 2));
  }
}

}  // namespace
}  // namespace lockstep
