#include "trainer/job/launcher_environment.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

using Variables = std::map<std::string, std::string>;

Launcher detect(const Variables& variables) {
  return detect_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string problem(const Variables& variables) {
  try {
    require_single_process(detect(variables));
    return "";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(DetectLauncher, NoneMeansSimulated) {
  const auto launcher = detect({{"PATH", "/bin"}});
  EXPECT_EQ(launcher.name, "");
  EXPECT_TRUE(launcher.launch.simulated);
  EXPECT_EQ(launcher.launch.world, 1);
}

TEST(DetectLauncher, KnowsTheLaunchers) {
  const std::pair<const char*, Variables> cases[] = {
      {"torchrun", {{"RANK", "3"}, {"WORLD_SIZE", "8"}}},
      {"Open MPI", {{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "8"}}},
      {"MPICH", {{"PMI_RANK", "3"}, {"PMI_SIZE", "8"}}},
      {"Slurm", {{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}}},
  };
  for (const auto& [name, variables] : cases) {
    const auto launcher = detect(variables);
    EXPECT_EQ(launcher.name, name);
    EXPECT_EQ(launcher.launch.rank, 3);
    EXPECT_EQ(launcher.launch.world, 8);
    EXPECT_FALSE(launcher.launch.simulated);
  }
}

TEST(DetectLauncher, TorchrunInsideSlurmIsTorchrun) {
  EXPECT_EQ(
      detect({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"RANK", "5"}, {"WORLD_SIZE", "8"}}).launch.rank,
      5);
}

TEST(DetectLauncher, ABatchScriptIsNotALaunch) {
  EXPECT_TRUE(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).launch.simulated);
}

TEST(DetectLauncher, OneProcessMaySimulate) {
  EXPECT_TRUE(detect({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).launch.simulated);
  EXPECT_EQ(problem({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "");
}

TEST(DetectLauncher, RefusesWhatMakesNoSense) {
  EXPECT_EQ(problem({{"WORLD_SIZE", "8"}}), "environment: WORLD_SIZE is set but RANK is not; torchrun sets both.");
  EXPECT_EQ(problem({{"RANK", "x"}, {"WORLD_SIZE", "8"}}),
            "environment: RANK is \"x\", torchrun sets an integer of at least 0.");
  EXPECT_EQ(problem({{"RANK", "0"}, {"WORLD_SIZE", "0"}}),
            "environment: WORLD_SIZE is \"0\", torchrun sets an integer of at least 1.");
  EXPECT_EQ(problem({{"RANK", "8"}, {"WORLD_SIZE", "8"}}), "environment: RANK = 8 is not below WORLD_SIZE = 8.");
}

TEST(RequireSingleProcess, SaysWhichCommandTakesMany) {
  EXPECT_EQ(problem({{"RANK", "0"}, {"WORLD_SIZE", "4"}}),
            "this is one of 4 processes, by the variables that torchrun sets; only lockstep train and lockstep "
            "verify run in many. Start one process, which simulates the mesh.");
}

}  // namespace
}  // namespace lockstep::trainer
