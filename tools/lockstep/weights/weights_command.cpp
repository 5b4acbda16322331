#include <nlohmann/json.hpp>
#include <optional>

#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/json_output.h"
#include "trainer/checkpoint/checkpoint_file.h"
#include "trainer/job/job_file.h"
#include "trainer/job/job_keys.h"
#include "trainer/weights/exchange/compare_weights.h"
#include "trainer/weights/exchange/exchange_weights.h"

namespace lockstep::tool {
namespace {

/// A line that is written over: "12 of 147 tensors".
trainer::WeightsProgress progress_of(const Output& output) {
  if (output.quiet) return {};
  return [](int64_t done, int64_t all) { print_err("\r{} of {} tensors{}", done, all, done == all ? "\n" : ""); };
}

/// What a job has to say to train it.
void print_model(const trainer::CheckpointMetadata& metadata, const std::string& folder) {
  const auto job = trainer::parse_saved_job(metadata.job, folder);
  print_out("[model]\n");
  for (const auto& key : trainer::job_keys())
    if (const auto text = key.text(job); key.section == "model" && !text.empty())
      print_out("{} = {}\n", key.name, text);
}

ExitCode run_import(const WeightsOptions& options) {
  std::optional<trainer::ModelSection> model;
  if (!options.job.empty()) model = trainer::load_job(options.job).model;
  trainer::import_weights(options.from, options.to, model ? &*model : nullptr, progress_of(options.output));
  const auto metadata = trainer::saved_metadata(options.to);
  if (!options.output.quiet) print_model(metadata, options.to);
  print_out("weights {}\n", metadata.state);
  write_json(options.output, {{"folder", options.to}, {"weights", metadata.state}});
  return ExitCode::kFine;
}

ExitCode run_merge(const WeightsOptions& options) {
  trainer::merge_weights(options.from, options.to, options.averages, progress_of(options.output));
  const auto metadata = trainer::saved_metadata(options.to);
  print_out("weights {}\n", metadata.state);
  write_json(options.output, {{"folder", options.to}, {"weights", metadata.state}});
  return ExitCode::kFine;
}

ExitCode run_export(const WeightsOptions& options) {
  trainer::export_weights(options.from, options.to,
                          {.averages = options.averages, .dtype = options.dtype, .length = options.length},
                          progress_of(options.output));
  print_out("{}: config.json and weights in {}\n", options.to, options.dtype);
  write_json(options.output, {{"folder", options.to}, {"dtype", options.dtype}});
  return ExitCode::kFine;
}

ExitCode run_reshard(const WeightsOptions& options) {
  trainer::reshard_checkpoint(options.from, options.to, options.chunks, progress_of(options.output));
  print_out("{}: {} chunks of each tensor, state {}\n", options.to, options.chunks,
            trainer::saved_metadata(options.to).state);
  write_json(options.output, {{"folder", options.to}, {"chunks", options.chunks}});
  return ExitCode::kFine;
}

ExitCode run_diff(const WeightsOptions& options) {
  const auto differences = trainer::compare_weights(options.from, options.to, progress_of(options.output));
  auto rows = nlohmann::ordered_json::array();
  for (const auto& one : differences) {
    rows.push_back({{"name", one.name},
                    {"what", one.what},
                    {"different", one.different},
                    {"elements", one.elements},
                    {"largest", one.largest},
                    {"relative", one.relative}});
    if (!one.what.empty())
      print_out("{:<48} {}\n", one.name, one.what);
    else
      print_out("{:<48} {} of {} elements, largest {:.3g}, relative {:.3g}\n", one.name, one.different, one.elements,
                one.largest, one.relative);
  }
  write_json(options.output, {{"differences", rows}});
  print_out("{}\n", differences.empty() ? "every tensor is equal in all bits"
                                        : fmt::format("{} tensors differ", differences.size()));
  return differences.empty() ? ExitCode::kFine : ExitCode::kInconsistent;
}

}  // namespace

ExitCode run_weights(const WeightsOptions& options) {
  if (options.action == "import") return run_import(options);
  if (options.action == "merge") return run_merge(options);
  if (options.action == "export") return run_export(options);
  if (options.action == "reshard") return run_reshard(options);
  return run_diff(options);
}

}  // namespace lockstep::tool
