#pragma once
#include <span>

#include "core/error.h"
#include "tools/lockstep/arguments.h"
#include "trainer/job/job.h"
#include "trainer/job/job_file.h"
#include "trainer/job/launcher_environment.h"
#include "trainer/job/mesh_degrees.h"

/// What each subcommand does. Results go to stdout, progress to stderr; errors are thrown (core/error.h).
///
/// Two executables hold them, because loading LibTorch takes longer than a first answer may: `lockstep` parses, checks
/// the job, answers whatever needs no tensor and hands the rest over to `lockstep-engine`, which links LibTorch. The
/// commands of the first group are in both, those of the second have two sources: engine_handover.cpp in `lockstep`,
/// NAME_command.cpp in `lockstep-engine`.
namespace lockstep::tool {

// Without LibTorch.
ExitCode run_doctor(const DoctorOptions& options);
ExitCode run_checkpoint(const CheckpointOptions& options);
ExitCode run_weights(const WeightsOptions& options);
ExitCode run_generate(const GenerateCommand& options);
ExitCode run_trace(const TraceOptions& options);
ExitCode run_report(const ReportOptions& options);
ExitCode run_schedule(const ScheduleOptions& options);

/// `prepare` runs a program in Python (tools/data), which the tokenizers' libraries are written for.
ExitCode run_data(const DataOptions& options);

/// Starts processes, one rank each, on this machine, and ends when all have ended: with the most telling exit code.
ExitCode run_launch(const LaunchOptions& options);
ExitCode run_launch_with_restarts(const LaunchOptions& options);

// With LibTorch. The job is resolved; its batch divides over every mesh, unless other shapes are asked for.
ExitCode run_train(const TrainOptions& options, const trainer::Job& job);
ExitCode run_verify(const VerifyOptions& options, const trainer::Job& job,
                    std::span<const trainer::MeshDegrees> meshes);
ExitCode run_replay(const ReplayOptions& options);
ExitCode run_plan(const PlanOptions& options);
ExitCode run_rules(const RulesOptions& options);
ExitCode run_bench(const BenchOptions& options);
/// `lockstep bench step --profile`: measures, prints a table of the ops of a step, and writes it as JSON.
ExitCode print_profile(const Output& output);
ExitCode run_mutate(const MutateOptions& options);
ExitCode run_fuzz(const FuzzOptions& options);
ExitCode run_shrink(const ShrinkOptions& options);

/// Whether this executable is `lockstep`, which greets; the engine only continues.
extern const bool kIsFront;

/// How this process keeps memory. First thing in main(): the allocator sets itself up among static objects.
void set_up_memory();

/// Reads, overrides and resolves the job for this launch; BadInput as soon as something does not fit. `many`: whether
/// the command can be one of many processes. Says what is not honoured, and adds it to `reading`.
trainer::Job prepare_job(const JobArguments& arguments, const Output& output, bool many, trainer::JobReading& reading);

/// The same for `lockstep verify`. The meshes that it is given may be others than the job's own, which need not be the
/// launch's then: the job is what one process would make of it.
trainer::Job prepare_verified_job(const JobArguments& arguments, const Output& output, bool has_meshes);

/// BadInput if this is one of several processes and they are not as many as the ranks of each mesh.
void require_ranks_of_launch(std::span<const trainer::MeshDegrees> meshes);

/// BadInput if the job's batch does not divide over one of the meshes, or this launch does not offer what it asks for
/// on it.
void require_meshes_fit(const trainer::Job& job, std::span<const trainer::MeshDegrees> meshes);

/// std::getenv(), as trainer::Environment takes it.
const char* environment_variable(const char* name);
/// Which launcher started this process.
trainer::Launcher launcher_here();

/// Loads plug-ins (trainer/plugin) and gives name and digest of each: in the engine, to which `lockstep` hands over, as
/// they need LibTorch, and only they know what the job may say.
std::vector<std::string> use_plugins(const std::vector<std::string>& files);

/// BadInput if the tokens of one step do not fit into this machine.
void require_tokens_fit(const trainer::Job& job);

/// Checks now that a file could be written later. An empty name is none.
void require_place(const std::string& file);

/// The same of the file of --json.
void require_json_place(const Output& output);

/// Parses, dispatches, and turns errors into one line and an exit code.
int main_of(int count, const char* const* arguments);

}  // namespace lockstep::tool
