#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/run_lockstep.h"
#include "tools/lockstep/waiting_threads.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A copy of `lockstep` whose neighbour the test decides on.
struct Installation {
  TemporaryFolder folder;
  Installation() { fs::copy_file(LOCKSTEP_BINARY, folder.file("lockstep")); }
  void add_engine(const std::string& script) const {
    fs::permissions(folder.write("lockstep-engine", "#!/bin/sh\n" + script), fs::perms::owner_all);
  }
};

TEST(Handover, TheEngineGetsTheCommandLineAsItWasTyped) {
  const Installation installation;
  installation.add_engine("printf '<%s>' \"$@\"; exit 3\n");
  const auto run =
      run_binary(installation.folder.file("lockstep"), "verify jobs/demo.toml -q --meshes 'tp=2; tp=4' --debug.seed=7");
  EXPECT_EQ(run.out, "<verify><jobs/demo.toml><-q><--meshes><tp=2; tp=4><--debug.seed=7>");
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.code, 3) << "the engine's exit code is the command's";
}

TEST(Handover, ThreadsSpinOnlyWhereEachHasACore) {
  EXPECT_EQ(tool::spin_count({.running = 0, .cores = 2, .threads = 2}), "10000");
  EXPECT_EQ(tool::spin_count({.running = 1, .cores = 2, .threads = 2}), "0");
  EXPECT_EQ(tool::spin_count({.running = 1, .cores = 2, .threads = 1}), "10000");
  EXPECT_EQ(tool::spin_count({.running = 0, .cores = 2, .threads = 4}), "0");
  const auto load = tool::machine_load();
  EXPECT_GE(load.cores, 1);
  EXPECT_GE(load.running, 0);
}

TEST(Handover, HowThreadsWaitIsTheUsersToSay) {
  const Installation installation;
  installation.add_engine("echo \"$GOMP_SPINCOUNT,$OMP_WAIT_POLICY\"\n");
  const auto told = [&](const std::string& variables) {
    return run_binary(installation.folder.file("lockstep"), "rules --missing", variables).out;
  };
  EXPECT_EQ(told("GOMP_SPINCOUNT=7 OMP_WAIT_POLICY= "), "7,\n");
  EXPECT_EQ(told("env -u GOMP_SPINCOUNT OMP_WAIT_POLICY=passive "), ",passive\n");
  EXPECT_EQ(told("env -u GOMP_SPINCOUNT -u OMP_WAIT_POLICY OMP_NUM_THREADS=4096 "), "0,\n");
}

TEST(Handover, TheOpTableHasItsHeadingBeforeTheEngineBegins) {
  const Installation installation;
  installation.add_engine("echo rows\n");
  const auto told = run_binary(installation.folder.file("lockstep"), "rules").out;
  EXPECT_THAT(told, ::testing::MatchesRegex("op +family +dims .*forms\nrows\n"));
}

TEST(Handover, ABadJobNeverReachesTheEngine) {
  const Installation installation;
  installation.add_engine("echo reached\n");
  const auto run = run_binary(installation.folder.file("lockstep"), "train jobs/demo.toml --training.steps 0");
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.out, "");
}

TEST(Handover, AMissingEngineIsNamed) {
  const Installation installation;
  const auto run = run_binary(installation.folder.file("lockstep"), "rules");
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err, "lockstep: " + installation.folder.file("lockstep-engine") +
                         " cannot be started: No such file or directory. It belongs beside lockstep.\n");
}

}  // namespace
}  // namespace lockstep
