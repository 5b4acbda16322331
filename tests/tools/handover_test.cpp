#include <gtest/gtest.h>

#include "tests/tools/run_lockstep.h"

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
