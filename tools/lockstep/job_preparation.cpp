#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "core/files/proc_value.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "trainer/identity/initial_weights.h"
#include "trainer/identity/run_start.h"
#include "trainer/job/batching.h"
#include "trainer/job/launcher_environment.h"
#include "trainer/job/torchtitan_keys.h"

namespace lockstep::tool {
namespace {

std::string compute_text(const trainer::TrainingSection& training) {
  const auto& wide = training.mixed_precision_float32;
  return training.mixed_precision_param + (wide.empty() ? "" : fmt::format(" and float32 ({})", fmt::join(wide, " ")));
}

/// What the run is about to do, in two lines and one for each thing that torchtitan would do otherwise: the first
/// output of every command that takes a job. `asked`: the job as it was written.
void greet(const trainer::Job& asked, const trainer::Job& job, const trainer::Launcher& launcher) {
  const auto mesh = trainer::mesh_of(job);
  const auto batching = trainer::derive_batching(job, mesh);
  const auto where = launcher.launch.simulated ? std::string("simulated in one process")
                                               : fmt::format("{} processes", launcher.launch.world);
  print_err("{}: {} {} on {}, {}\n", job.job.description, job.model.name, job.model.flavor, mesh.text(), where);
  print_err("compute {}, seed {}, {} steps of {} x {} tokens (local batch {}, accumulated {} times)\n",
            compute_text(job.training), job.debug.seed, job.training.steps, batching.global_batch_size,
            job.training.seq_len, batching.local_batch_size, batching.accumulation_steps);
  for (const auto& line : trainer::differences_in(asked, job)) print_err("unlike torchtitan: {}\n", line);
}

/// Though quiet: what was asked for is not done.
void warn(const trainer::JobReading& reading) {
  for (const auto& each : reading.unhonoured)
    print_err("{}: {}: {} = {}{}{}\n", each.refused ? "not honoured, a run refuses it" : "not honoured", each.where,
              each.key, each.value, each.instead.empty() ? "" : ": ", each.instead);
}

/// Before a second of work: what ends a process by a signal when it is tried.
void require_simulable(const trainer::MeshDegrees& mesh) {
  constexpr int64_t kMostRanks = 1024;
  if (mesh.ranks() > kMostRanks)
    fail<BadInput>(
        "mesh {} has {} ranks; one process simulates {} at most. lockstep train --dry-run counts for any mesh.",
        mesh.text(), mesh.ranks(), kMostRanks);
}

/// A saved job tells which plug-ins it ran with: no others may stand in for them.
trainer::Job with_plugins(trainer::Job job, const std::vector<std::string>& loaded) {
  if (!job.job.plugins.empty() && job.job.plugins != loaded)
    fail<BadInput>(
        "job.plugins is [{}], loaded are [{}]. Give the plug-ins that it names with --plugin, in this order.",
        fmt::join(job.job.plugins, ", "), fmt::join(loaded, ", "));
  job.job.plugins = loaded;
  return job;
}

/// The job as it was written, for the launch that its open degrees are resolved for.
using Resolve = std::function<trainer::Job(const trainer::Job& asked)>;

trainer::Job resolved_for(const trainer::Job& asked, const trainer::Launch& launch) {
  return trainer::with_initial_weights(trainer::resolve(trainer::with_saved_values(asked, launch), launch));
}

trainer::Job prepare(const JobArguments& arguments, const Output& output, const trainer::Launcher& launcher,
                     trainer::JobReading& reading, const Resolve& resolve) {
  const auto loaded = use_plugins(arguments.plugins);
  const auto asked = with_plugins(trainer::load_job(arguments.file, arguments.overrides, reading), loaded);
  auto job = resolve(asked);
  const bool comes_first = kIsFront || !loaded.empty();  // else the front has greeted
  if (comes_first && launcher.launch.rank == 0) {
    if (!output.quiet) greet(asked, job, launcher);
    warn(reading);
  }
  return job;
}

}  // namespace

const char* environment_variable(const char* name) { return std::getenv(name); }

trainer::Launcher launcher_here() { return trainer::detect_launcher(environment_variable); }

void require_tokens_fit(const trainer::Job& job) {
  constexpr double kBytesOfToken = 16, kGibibyte = 1 << 30;  // itself and its label
  const auto bytes =
      static_cast<double>(job.training.global_batch_size) * static_cast<double>(job.training.seq_len) * kBytesOfToken;
  const auto memory = static_cast<double>(memory_bytes());
  if (bytes > memory)
    fail<BadInput>(
        "a step of {} samples of {} tokens takes {:.0f} GiB for the tokens alone, this machine has {:.0f} GiB. Choose "
        "a smaller training.global_batch_size, training.local_batch_size or training.seq_len.",
        job.training.global_batch_size, job.training.seq_len, bytes / kGibibyte, memory / kGibibyte);
}

trainer::Job prepare_job(const JobArguments& arguments, const Output& output, bool many, trainer::JobReading& reading) {
  const auto launcher = launcher_here();
  if (!many) trainer::require_single_process(launcher);
  return prepare(arguments, output, launcher, reading, [&](const trainer::Job& asked) {
    auto job = resolved_for(asked, launcher.launch);
    if (many && launcher.launch.simulated) require_simulable(trainer::mesh_of(job));
    return job;
  });
}

trainer::Job prepare_verified_job(const JobArguments& arguments, const Output& output, bool has_meshes) {
  const auto launcher = launcher_here();
  trainer::JobReading reading;
  return prepare(arguments, output, launcher, reading, [&](const trainer::Job& asked) {
    const bool is_own = !has_meshes && asked.verify.meshes.empty();
    return resolved_for(asked, is_own ? launcher.launch : trainer::Launch{});
  });
}

void require_ranks_of_launch(std::span<const trainer::MeshDegrees> meshes) {
  const auto launch = launcher_here().launch;
  for (const auto& mesh : meshes)
    if (!launch.simulated && mesh.ranks() != launch.world)
      fail<BadInput>(
          "mesh {} has {} ranks, this launch {} processes: each has one rank of every mesh that is verified. Leave it "
          "out, or start one process, which simulates meshes of any size.",
          mesh.text(), mesh.ranks(), launch.world);
}

void require_meshes_fit(const trainer::Job& job, std::span<const trainer::MeshDegrees> meshes) {
  for (const auto& mesh : meshes) {
    auto on_mesh = job;
    trainer::set_mesh(on_mesh, mesh);
    trainer::require_offered(on_mesh, launcher_here().launch);
    trainer::derive_batching(job, mesh);
  }
}

void require_place(const std::string& file) {
  if (file.empty()) return;
  std::error_code ignored;
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored))
    fail<FileError>("{}: cannot be written: there is no folder {}.", file, folder.string());
  const auto status = std::filesystem::status(file, ignored);
  if (std::filesystem::is_directory(status)) fail<FileError>("{}: cannot be written: it is a folder.", file);
  // A regular file is written beside the old one and takes its place; anything else (/dev/stdout) is written to.
  const bool is_other = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
  const auto written = is_other ? file : folder.empty() ? "." : folder.string();
  if (::access(written.c_str(), W_OK) != 0) fail<FileError>("{}: cannot be written: {}.", file, std::strerror(errno));
}

void require_json_place(const Output& output) { require_place(output.json); }

}  // namespace lockstep::tool
