#include "tools/lockstep/arguments.h"

#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"
#include "tools/lockstep/argument_checks.h"
#include "tools/lockstep/data/data_arguments.h"
#include "tools/lockstep/fuzz_arguments.h"
#include "tools/lockstep/launch/launch_arguments.h"
#include "tools/lockstep/overrides.h"
#include "tools/lockstep/plan/plan_arguments.h"
#include "tools/lockstep/recording_arguments.h"
#include "tools/lockstep/schedule/schedule_arguments.h"
#include "tools/lockstep/weights/checkpoint_arguments.h"
#include "tools/lockstep/weights/generate_arguments.h"
#include "trainer/job/job_keys.h"
#include "trainer/job/job_reference.h"

namespace lockstep::tool {
namespace {

constexpr const char* kAbout =
    "Lockstep trains on LibTorch over meshes of ranks, and checks every mesh against one device.\n"
    "Exit codes: 0 fine, 1 internal error, 2 bad input, 3 inconsistency found, 4 transport failed, 5 file damaged or "
    "not\n"
    "written, 6 interrupted.";

constexpr const char* kBenchExamples =
    "lockstep bench dispatch\n"
    "  lockstep bench numerics --rows 'mm_512x*,attention_*_T1024' --instructions avx2\n"
    "  lockstep bench peers --rows one_thread,fsdp_2 --json peers.json\n"
    "\nRows of numerics on two threads end in _t2. Peers in Python need what tools/python_env installs.";

/// The parser and the options that it fills.
struct Parser {
  CLI::App app{kAbout, "lockstep"};
  TrainOptions train;
  VerifyOptions verify;
  std::optional<std::string> odd_shapes;
  RulesOptions rules;
  BenchOptions bench;
  MutateOptions mutate;
  FuzzOptions fuzz;
  ShrinkOptions shrink;
  DoctorOptions doctor;
  CheckpointOptions checkpoint;
  WeightsOptions weights;
  GenerateCommand generate;
  LaunchOptions launch;
  ReplayOptions replay;
  TraceOptions trace;
  ReportOptions report;
  DataOptions data;
  ScheduleOptions schedule;
  PlanOptions plan;

  Parser() {
    app.set_version_flag("--version", "lockstep " LOCKSTEP_VERSION);
    app.footer("Example:\n  lockstep train jobs/demo.toml --verify\n\n'lockstep COMMAND --help' tells more.");
    app.allow_extras();
    add_train();
    add_verify();
    add_recordings();
    add_schedule_options(*command("schedule", "Look at a pipeline schedule: bubble, activations, picture",
                                  kScheduleExamples, schedule.output),
                         schedule);
    add_plan_options(*command("plan", "Forecast memory and speed of meshes on many GPUs", kPlanExamples, plan.output),
                     plan);
    add_rules();
    add_bench();
    add_mutate_options(
        *command("mutate", "Plant faults and count how many verification sees", kMutateExamples, mutate.output),
        mutate);
    add_fuzz_options(
        *command("fuzz", "Search for cases in which a mesh and one device differ", kFuzzExamples, fuzz.output), fuzz);
    add_generate_options(*command("generate", "Go on with a text", kGenerateExamples, generate.output), generate);
    add_shrink_options(
        *command("shrink", "Make the case of a finding as small as it gets", kShrinkExamples, shrink.output), shrink);
    command("doctor", "Show what this machine can run", "lockstep doctor --json doctor.json", doctor.output);
    add_checkpoint_commands(*app.add_subcommand("checkpoint", "Work with checkpoint folders"), checkpoint, weights);
    add_data_commands(*app.add_subcommand("data", "Make files of tokens, and look into them: prepare, inspect"), data);
    add_launch_options(
        *app.add_subcommand("launch", "Run a command in several processes on this machine, one rank each"), launch);
  }

  CLI::App* command(const char* name, const char* about, const std::string& example, Output& output) {
    auto* sub = app.add_subcommand(name, about);
    sub->add_option("--json", output.json, "Write a machine-readable result to FILE")->type_name("FILE");
    sub->add_flag("-q,--quiet", output.quiet, "Results and errors only");
    sub->footer("Example:\n  " + example);
    sub->allow_extras();
    return sub;
  }

  static void add_plugins(CLI::App& command, JobArguments& job) {
    command.add_option("--plugin", job.plugins, "Load what FILE adds (docs/plugins.md); may be given several times")
        ->type_name("FILE")
        ->expected(1)
        ->take_all();
  }

  static std::string with_keys(const char* example) {
    return fmt::format("{}\n\nAny key of the job can be changed (its default in parentheses):\n{}", example,
                       trainer::job_reference_help());
  }

  void add_train() {
    auto* sub = command("train", "Train the model that a job file describes",
                        with_keys("lockstep train jobs/demo.toml --verify --training.steps 50"), train.output);
    sub->add_option("job", train.job.file, "Job file (TOML, docs/job.md)")->required()->type_name("JOB");
    add_plugins(*sub, train.job);
    sub->add_flag("--verify", train.verify, "Compare every step with one device; exit 3 on a difference");
    sub->add_option("--html", train.html, "Write what --verify says as a page to FILE")->type_name("FILE");
    sub->add_option("--record", train.record, "Record every step into this folder, for lockstep replay")
        ->type_name("DIR");
    sub->add_flag("--dry-run", train.dry_run, "Count parameters, memory and collectives; allocate and train nothing");
    sub->add_flag("--print-job", train.print_job, "Print the resolved job as TOML and stop");
  }

  void add_recordings() {
    add_replay_options(
        *command("replay", "Run one rank's recorded step again, without its peers, and compare every result",
                 "lockstep replay traces/ --rank 3 --step 120", replay.output),
        replay);
    add_trace_commands(*app.add_subcommand("trace", "Look into recordings: ls, dump, diff, timeline"), trace);
    add_report_options(*command("report", "Draw the curves of runs: one page for a browser",
                                "lockstep report outputs/a outputs/b --html compared.html", report.output),
                       report);
  }

  void add_verify() {
    auto* sub =
        command("verify", "Compare meshes with one device, step by step",
                with_keys("lockstep verify jobs/demo.toml --meshes \"tp=2; dp_shard=2,tp=2\" --training.steps 3"),
                verify.output);
    sub->add_option("job", verify.job.file, "Job file (TOML, docs/job.md)")->required()->type_name("JOB");
    add_plugins(*sub, verify.job);
    sub->add_option("--meshes", verify.meshes, "Meshes separated by ';'; without it verify.meshes, or the job's own")
        ->type_name("\"AXIS=SIZE,...; ...\"");
    sub->add_option("--odd-shapes", odd_shapes,
                    "Instead of the job's sizes, odd ones that the seed draws: [model], batch, length, recomputation, "
                    "type of compute; of 1..5 five jobs")
        ->type_name("SEED|FIRST..LAST");
    sub->add_option("--losses", verify.losses, "Print the losses of these steps, one device's and each mesh's")
        ->delimiter(',')
        ->type_name("STEP,...")
        ->check(CLI::PositiveNumber);
    sub->add_option("--html", verify.html, "Write a page to FILE, and write it again after each mesh")
        ->type_name("FILE");
    sub->add_flag("--bitwise", verify.bitwise,
                  "Compare bits, with canonical numerics; the default unless the job says numerics.mode = \"native\"");
  }

  void add_rules() {
    auto* sub = command("rules", "List the sharding rules and how they were checked",
                        "lockstep rules\n  lockstep rules --missing", rules.output);
    sub->add_flag("--missing", rules.missing, "List the overloads of LibTorch's without a rule, and why, instead");
    sub->add_option("--page", rules.page, "Write the table to FILE, as Markdown (docs/ops.md)")->type_name("FILE");
  }

  void add_bench() {
    auto* sub = command("bench", "Measure against plain LibTorch", kBenchExamples, bench.output);
    sub->add_option("name", bench.name,
                    "collectives, dispatch, forecast, gpu, month, numerics, peers, processes, record, rng, scale, step "
                    "or verify")
        ->required()
        ->type_name("NAME");
    sub->add_option(
           "--rows", bench.rows,
           "Of collectives, forecast, numerics, peers, processes, scale and verify, only rows whose name fits one of "
           "these patterns (numerics: all but the largest, \"*\" measures those, too); of gpu, sizes (1MiB, "
           "1GiB) and ops")
        ->type_name("'PATTERN,...'");
    sub->add_option(
           "--seconds", bench.seconds,
           "Of collectives, forecast and processes (1), scale (3), peers (10) and numerics (0.3), for each row, but "
           "five pairs at least")
        ->type_name("SECONDS")
        ->check(CLI::NonNegativeNumber);
    sub->add_option("--device", bench.device, "Of peers (cpu); cuda: on one GPU, beside compiled PyTorch, too")
        ->type_name("cpu|cuda");
    sub->add_option("--kills", bench.kills, "Of month: so many losses, instead of a month's 233")
        ->type_name("N")
        ->check(CLI::Range(int64_t{1}, int64_t{100000}));
    sub->add_option("--hardware", bench.hardware, "Of forecast: write what is fitted, for lockstep plan --hardware")
        ->type_name("FILE");
    sub->add_flag("--profile", bench.profile, "Of step: op by op, beside what the machine can do");
    sub->add_option("--instructions", bench.instructions, "Limit Lockstep, MKL and LibTorch alike")
        ->type_name("baseline|avx2|avx512");
  }
};

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

/// "lockstep checkpoint inspect": what a user typed to get here.
std::string path_of(const CLI::App& app) {
  return app.get_parent() ? fmt::format("{} {}", path_of(*app.get_parent()), app.get_name()) : app.get_name();
}

/// Why an argument is not understood by `app`, and what may have been meant.
[[noreturn]] void fail_extra(const CLI::App& app, const std::string& extra) {
  const auto help = fmt::format("'{} --help' lists what is", path_of(app));
  if (!extra.starts_with('-')) fail<BadInput>("{} is one argument too many; {} expected.", extra, help);
  auto candidates = options_of(app);
  for (const auto& key : trainer::job_keys())
    if (extra == fmt::format("--{}", key.name))
      fail<BadInput>("{} is not an option. Did you mean --{}?", extra, key.dotted());
  const auto close = nearest(extra, candidates);
  fail<BadInput>("{} is not an option.{} {}.", extra, close ? fmt::format(" Did you mean {}?", *close) : "", help);
}

[[noreturn]] void fail_without_command(const Parser& parser) {
  fail<BadInput>("a command is needed: {}.", fmt::join(names_of(parser.app), ", "));
}

/// The innermost command that was parsed.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

Command command_of(Parser& parser, std::vector<trainer::Setting> overrides) {
  const auto name = parser.app.get_subcommands().front()->get_name();
  if (name == "train") {
    if (!parser.train.record.empty())
      overrides.push_back(trainer::command_line_setting("record.folder", parser.train.record));
    return parser.train.job.overrides = std::move(overrides), parser.train;
  }
  if (name == "verify") {
    if (parser.verify.bitwise)
      overrides.push_back(trainer::command_line_setting("numerics.mode", std::string(trainer::kCanonicalMode)));
    if (parser.odd_shapes) parser.verify.odd_shapes = seeds_of("--odd-shapes", *parser.odd_shapes);
    return parser.verify.job.overrides = std::move(overrides), parser.verify;
  }
  if (!overrides.empty())
    fail<BadInput>("--{} is a key of jobs; lockstep {} takes no job.", overrides.front().key, name);
  if (name == "launch") return parser.launch;
  if (name == "replay") return checked(parser.replay);
  if (name == "trace") return parser.trace;
  if (name == "report") return parser.report;
  if (name == "schedule") return checked(parser.schedule);
  if (name == "plan") return checked(parser.plan);
  if (name == "rules") return parser.rules;
  if (name == "bench") return checked(parser.bench);
  if (name == "mutate") return checked(parser.mutate);
  if (name == "fuzz") return checked(parser.fuzz);
  if (name == "shrink") return parser.shrink;
  if (name == "generate") return checked(parser.generate);
  if (name == "doctor") return parser.doctor;
  if (!parser.weights.action.empty()) return parser.weights;
  if (name == "data") return parser.data;
  return parser.checkpoint;
}

}  // namespace

Command parse_arguments(int count, const char* const* arguments) {
  Parser parser;
  const int launched = launched_from(count, arguments, names_of(parser.app));
  auto [overrides, rest] = split(launched, arguments);
  if (rest.empty()) fail_without_command(parser);
  if (!rest.front().starts_with('-')) require_known(rest.front(), "command", names_of(parser.app));
  std::reverse(rest.begin(), rest.end());  // the order that the library wants
  try {
    parser.app.parse(rest);
  } catch (const CLI::CallForHelp&) {
    const auto& app = innermost(parser.app);
    return PrintText{app.help(app.get_parent() ? path_of(*app.get_parent()) : "")};
  } catch (const CLI::CallForVersion&) {
    return PrintText{"lockstep " LOCKSTEP_VERSION "\n"};
  } catch (const CLI::ParseError& error) {
    fail<BadInput>("{}. '{} --help' tells more.", error.what(), path_of(innermost(parser.app)));
  }
  const auto& app = innermost(parser.app);
  if (const auto extras = app.remaining(); !extras.empty()) fail_extra(app, extras.front());
  if (parser.app.get_subcommands().empty()) fail_without_command(parser);
  auto command = command_of(parser, std::move(overrides));
  if (auto* launch = std::get_if<LaunchOptions>(&command))
    return with_command(std::move(*launch), arguments + launched, arguments + count);
  return command;
}

}  // namespace lockstep::tool
