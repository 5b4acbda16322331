#include "tools/lockstep/recording_arguments.h"

#include <CLI/CLI.hpp>

#include "core/error.h"

namespace lockstep::tool {
namespace {

constexpr int kMostReplays = 1'000'000;

trainer::Setting setting_of(const std::string& change) {
  const auto equals = change.find('=');
  if (equals == change.npos) fail<BadInput>("--set {}: expected KEY=VALUE, for example training.max_norm=0.5.", change);
  return trainer::command_line_setting(change.substr(0, equals), change.substr(equals + 1));
}

void add_output(CLI::App& command, Output& output) {
  command.add_option("--json", output.json, "Write a machine-readable result to FILE")->type_name("FILE");
  command.add_flag("-q,--quiet", output.quiet, "Results and errors only");
  command.allow_extras();
}

void add_place(CLI::App& command, TraceOptions& options) {
  command.add_option("--rank", options.rank, "Of this rank alone")->type_name("R");
  command.add_option("--step", options.step, "Of this step alone")->type_name("S");
}

CLI::App& action(CLI::App& command, TraceOptions& options, const char* name, const char* about, const char* example) {
  auto& sub = *command.add_subcommand(name, about);
  sub.footer(std::string("Example:\n  ") + example);
  sub.callback([&options, name] { options.action = name; });
  sub.add_option("folder", options.folder, "Recording")->required()->type_name("DIR");
  add_output(sub, options.output);
  return sub;
}

}  // namespace

void add_replay_options(CLI::App& command, ReplayOptions& options) {
  auto* folder = command.add_option("folder", options.folder, "Folder that train --record wrote (docs/recording.md)")
                     ->type_name("DIR");
  command.add_option("--case", options.case_file, "Run the op of this file again, which a finding of verify wrote")
      ->type_name("FILE")
      ->excludes(folder);
  command.add_option("--rank", options.rank, "Whose step; not needed if the folder holds one rank")->type_name("R");
  command.add_option("--step", options.step, "Which step; without it the last one recorded")->type_name("S");
  command.add_option("--until", options.until, "Stop after this op: an id as reports print it, or a part of one")
      ->type_name("OP");
  command.add_option("--break", options.break_at, "Stop after this op and write its operands and results (HDF5, .npy)")
      ->type_name("OP")
      ->excludes("--until");
  command.add_option("--dump", options.dump, "Where --break writes; lockstep-break if it is not given")
      ->type_name("DIR")
      ->needs("--break");
  command
      .add_option("--repeat", options.repeat, "Replay so many times: differences that come and go are nondeterminism")
      ->type_name("N")
      ->check(CLI::Range(1, kMostReplays));
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&options](const std::vector<std::string>& changes) {
            for (const auto& change : changes) options.changes.push_back(setting_of(change));
          },
          "Change a key of the recorded job; may be given several times")
      ->type_name("KEY=VALUE");
  auto* device = command.add_option_function<std::string>(
      "--device",
      [&options](const std::string& name) {
        options.changes.push_back(trainer::command_line_setting("training.device", name));
      },
      "What computes, cpu or cuda; without it what computed then. Elsewhere native numerics is within bound at best");
  device->type_name("DEVICE")->check(CLI::IsMember({"cpu", "cuda"}));
  command
      .add_option("--against", options.against,
                  "reference: run all ranks from their recordings, and one device from the same state; name the first "
                  "op that differs")
      ->type_name("reference")
      ->check(CLI::IsMember({"reference"}))
      ->excludes(device);
}

void add_trace_commands(CLI::App& command, TraceOptions& options) {
  command.footer("Example:\n  lockstep trace ls traces/");
  command.require_subcommand(1);
  action(command, options, "ls", "List ranks and steps, and what is damaged", "lockstep trace ls traces/");
  auto& dump = action(command, options, "dump", "Print a step: ops, results' digests, collectives",
                      "lockstep trace dump traces/ --rank 3 --step 120");
  add_place(dump, options);
  auto& diff =
      action(command, options, "diff", "Align two recordings by op id: the first divergence, and a summary by module",
             "lockstep trace diff traces/ other/ --step 120");
  diff.add_option("other", options.other, "The other recording")->required()->type_name("DIR");
  add_place(diff, options);
  auto& timeline = action(command, options, "timeline",
                          "Write a page (or a Chrome trace) of a step: what costs most, ops and collectives over time",
                          "lockstep trace timeline traces/ --step 120 --html step120.html");
  add_place(timeline, options);
  timeline.add_option("--html", options.html, "A page that needs nothing else")->type_name("FILE");
  timeline.add_option("--chrome", options.chrome, "JSON for chrome://tracing and Perfetto")->type_name("FILE");
}

void add_report_options(CLI::App& command, ReportOptions& options) {
  command
      .add_option("outputs", options.folders,
                  "Folders that train wrote (job.dump_folder); several share a chart for each number")
      ->required()
      ->type_name("OUTPUTS");
  command.add_option("--html", options.html, "Write the page to FILE; without it report.html in the first folder")
      ->type_name("FILE");
}

}  // namespace lockstep::tool
