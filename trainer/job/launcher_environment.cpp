#include "trainer/job/launcher_environment.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "core/error.h"

namespace lockstep::trainer {
namespace {

struct Convention {
  const char* launcher;
  const char* rank;
  const char* world;
};

constexpr Convention kConventions[] = {
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

int64_t parse(const Convention& convention, const char* name, std::string_view text, int64_t least) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least)
    fail<BadInput>("environment: {} is \"{}\", {} sets an integer of at least {}.", name, text, convention.launcher,
                   least);
  return value;
}

std::optional<Launcher> detect(const Convention& convention, const Environment& variable) {
  const char* rank = variable(convention.rank);
  const char* world = variable(convention.world);
  if (!world) return {};
  if (!rank)
    fail<BadInput>("environment: {} is set but {} is not; {} sets both.", convention.world, convention.rank,
                   convention.launcher);
  Launch launch{parse(convention, convention.rank, rank, 0), parse(convention, convention.world, world, 1), false};
  if (launch.rank >= launch.world)
    fail<BadInput>("environment: {} = {} is not below {} = {}.", convention.rank, launch.rank, convention.world,
                   launch.world);
  launch.simulated = launch.world == 1;
  return Launcher{convention.launcher, launch};
}

}  // namespace

Launcher detect_launcher(const Environment& variable) {
  for (const auto& convention : kConventions)
    if (auto launcher = detect(convention, variable)) return *launcher;
  return {};
}

void require_single_process(const Launcher& launcher) {
  if (launcher.launch.world > 1)
    fail<BadInput>(
        "this is one of {} processes, by the variables that {} sets; only lockstep train and lockstep verify "
        "run in many. Start one process, which simulates the mesh.",
        launcher.launch.world, launcher.name);
}

}  // namespace lockstep::trainer
