#include <exception>
#include <new>
#include <string_view>

#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"

namespace lockstep::tool {
namespace {

ExitCode run(const PrintText& print) {
  write_out(print.text);
  return ExitCode::kFine;
}

ExitCode run(const TrainOptions& options) {
  require_json_place(options.output);
  require_place(options.html);
  trainer::JobReading reading{.is_dry = options.dry_run};
  auto job = prepare_job(options.job, options.output, /*many=*/!options.dry_run && !options.print_job, reading);
  if (options.verify) job.verify.enable = true;
  const bool draws = options.dry_run && job.parallelism.pipeline_parallel_degree > 1;
  if (!options.html.empty() && !job.verify.enable && !draws)
    fail<BadInput>("--html shows what verification says: add --verify.");
  if (options.print_job) return run(PrintText{trainer::to_toml(job)});
  require_tokens_fit(job);
  if (!options.dry_run) trainer::require_dataset_path(job);
  auto as_read = options;
  as_read.unhonoured = std::move(reading.unhonoured);
  return run_train(as_read, job);
}

ExitCode run(const VerifyOptions& options) {
  require_json_place(options.output);
  require_place(options.html);
  auto meshes = options.meshes.empty() ? std::vector<trainer::MeshDegrees>{} : trainer::parse_meshes(options.meshes);
  auto greeting = options.output;
  if (!options.odd_shapes.empty()) greeting.quiet = true;  // what it says is not what is compared
  auto job = prepare_verified_job(options.job, greeting, !meshes.empty());
  trainer::require_dataset_path(job);
  require_tokens_fit(job);
  for (const auto step : options.losses) job.verify.steps = std::max(job.verify.steps, step);
  if (meshes.empty() && !job.verify.meshes.empty()) meshes = trainer::parse_meshes(job.verify.meshes);
  if (meshes.empty()) meshes.push_back(trainer::mesh_of(job));
  require_ranks_of_launch(meshes);
  // Fails now, not after the meshes before it. Odd shapes are jobs of their own.
  if (options.odd_shapes.empty()) require_meshes_fit(job, meshes);
  return run_verify(options, job, meshes);
}

ExitCode run(const PlanOptions& options) { return require_json_place(options.output), run_plan(options); }
ExitCode run(const ReplayOptions& options) { return require_json_place(options.output), run_replay(options); }
ExitCode run(const TraceOptions& options) { return require_json_place(options.output), run_trace(options); }
ExitCode run(const ReportOptions& options) {
  require_json_place(options.output);
  require_place(options.html);
  return run_report(options);
}
ExitCode run(const ScheduleOptions& options) {
  require_json_place(options.output);
  require_place(options.csv);
  require_place(options.html);
  return run_schedule(options);
}
ExitCode run(const RulesOptions& options) { return require_json_place(options.output), run_rules(options); }
ExitCode run(const BenchOptions& options) { return require_json_place(options.output), run_bench(options); }
ExitCode run(const MutateOptions& options) { return require_json_place(options.output), run_mutate(options); }
ExitCode run(const FuzzOptions& options) {
  require_json_place(options.output);
  require_place(options.record);
  return run_fuzz(options);
}
ExitCode run(const ShrinkOptions& options) {
  require_json_place(options.output);
  require_place(options.smallest);
  return run_shrink(options);
}
ExitCode run(const DoctorOptions& options) { return require_json_place(options.output), run_doctor(options); }
ExitCode run(const DataOptions& options) { return require_json_place(options.output), run_data(options); }
ExitCode run(const LaunchOptions& options) {
  return options.restarts ? run_launch_with_restarts(options) : run_launch(options);
}
ExitCode run(const CheckpointOptions& options) { return require_json_place(options.output), run_checkpoint(options); }
ExitCode run(const GenerateCommand& options) { return require_json_place(options.output), run_generate(options); }
ExitCode run(const WeightsOptions& options) { return require_json_place(options.output), run_weights(options); }

constexpr std::string_view kNoMemory =
    "this machine does not have the memory that was asked for. Choose a smaller model, batch or sequence.";

/// LibTorch has no type for it.
bool is_lack_of_memory(std::string_view message) { return message.find("can't allocate memory") != message.npos; }

/// One line is enough for an error; what LibTorch adds after it is a stack trace.
int report(ExitCode code, std::string_view message) {
  print_err("lockstep: {}\n", message.substr(0, message.find('\n')));
  return static_cast<int>(code);
}

}  // namespace

int main_of(int count, const char* const* arguments) {
  try {
    const auto command = parse_arguments(count, arguments);
    const auto code = std::visit([](const auto& options) { return run(options); }, command);
    const auto problem = unwritten_results();
    return problem.empty() ? static_cast<int>(code) : report(code == ExitCode::kFine ? ExitCode::kFile : code, problem);
  } catch (const trainer::RefusedJob& error) {
    for (const auto& line : error.lines()) report(error.code(), line);
    return static_cast<int>(error.code());
  } catch (const Error& error) {
    return report(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::kBadInput, kNoMemory);
  } catch (const std::exception& error) {
    if (is_lack_of_memory(error.what())) return report(ExitCode::kBadInput, kNoMemory);
    return report(ExitCode::kInternal, fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace lockstep::tool
