#include <ATen/Parallel.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/elementary/floating_environment.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/coverage_report.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/page_facts.h"
#include "tools/lockstep/reports/page_file.h"
#include "tools/lockstep/reports/price_report.h"
#include "trainer/data/dataset.h"
#include "trainer/optim/schedule.h"
#include "trainer/verify/finding.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::tool {
namespace {

/// Steps of one mesh beside one device.
struct MeshVerdict {
  std::string mesh;
  bool agrees = true;
  double loss = 0, gradient = 0, parameter = 0, bytes = 0, ratio = 0;
  int64_t differing_bits = 0;
  std::optional<OpCheck::Counts> ops;  ///< of mode ops
  std::string worst = "-", finding;
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  std::optional<trainer::PriceTable> prices;  ///< under canonical numerics
  Coverage coverage;
  PageMesh page;
};

nlohmann::ordered_json json_of(const trainer::StepCheck& check, int64_t step, const std::string& case_file) {
  const auto& blame = check.blame.value();
  return {{"step", step},
          {"kind", blame.kind},
          {"op", blame.op},
          {"phase", blame.phase},
          {"module", blame.module},
          {"collective", blame.collective},
          {"axis", blame.axis},
          {"group", blame.group},
          {"ranks", blame.ranks},
          {"rule", blame.rule},
          {"pattern", blame.pattern},
          {"transient", blame.transient},
          {"difference", check.difference},
          {"case", case_file}};
}

/// `again`: the command that compares this mesh alone.
void add(MeshVerdict& verdict, const trainer::Job& job, int64_t step, const trainer::StepCheck& check,
         const std::string& again) {
  add_check(verdict.page, step, check);
  verdict.agrees = check.agrees();
  verdict.loss = std::max(verdict.loss, check.comparison.loss);
  verdict.gradient = std::max(verdict.gradient, check.comparison.gradient);
  verdict.parameter = std::max(verdict.parameter, check.comparison.parameter);
  verdict.differing_bits += check.comparison.differing_bits;
  verdict.bytes = check.bytes;
  verdict.ratio = check.seconds_ratio;
  if (check.ops) verdict.ops = check.ops;
  if (verdict.agrees) return;
  const auto finding = trainer::finding_with_case(check, job.job.dump_folder);
  const auto& blame = check.blame.value();
  verdict.worst = blame.op.empty() ? blame.kind : blame.op;
  verdict.finding = fmt::format("INCONSISTENT  mesh {}, step {}: {}", verdict.mesh, step, finding.text);
  verdict.findings.push_back(json_of(check, step, finding.case_file));
  verdict.page.findings.push_back(finding_on_page(step, check, again));
  complete(verdict.page, verdict.finding);
}

/// A wrong result may show as an error of ours, of sizes or counts that it leads to: where it came is told.
trainer::StepCheck check_step(trainer::MeshComparison& comparison, const std::string& mesh, int64_t step,
                              const trainer::TokenBatch& batch, double rate) {
  try {
    return comparison.check(step, batch, rate);
  } catch (const InternalError& error) {
    fail<InternalError>("mesh {}, step {}: {}", mesh, step, error.what());
  } catch (const Inconsistency& error) {
    fail<Inconsistency>("mesh {}, {}", mesh, error.what());
  }
}

/// Counts what is sent: for the table of prices, and for the page, if one is written.
void count_traffic(MeshVerdict& verdict, const trainer::Job& job, const trainer::TrainingRun::Options& options,
                   bool has_page) {
  const bool canonical = job.numerics.is_canonical();
  if (!canonical && !has_page) return;
  const auto dry = trainer::dry_run(job, options);
  const auto prices =
      trainer::price_table(dry, canonical ? trainer::dry_run(trainer::with_native_numerics(job), options) : dry);
  add_prices(verdict.page, prices, canonical);
  add_state(verdict.page, dry);
  if (canonical) verdict.prices = prices;
}

MeshVerdict verify_mesh(const trainer::Job& job, const trainer::MeshDegrees& mesh, const VerifyOptions& command) {
  trainer::TrainingRun::Options options;
  options.mesh = mesh;
  trainer::MeshComparison comparison(job, options);
  const trainer::LearningRateSchedule schedule(job);
  const auto data = trainer::make_dataset(job, comparison.candidate().model().vocabulary());
  MeshVerdict verdict;
  verdict.mesh = verdict.page.mesh = mesh.text();
  const auto again = fmt::format("{} --meshes {}", command_of("verify", command.job), shell_word(verdict.mesh));
  count_traffic(verdict, job, options, !command.html.empty());
  CoverageObserver coverage;
  const int64_t rows = job.training.global_batch_size, vocabulary = comparison.candidate().model().vocabulary();
  for (int64_t step = 1; step <= job.verify.steps + 1 && verdict.agrees; ++step) {
    const bool is_own = step > job.verify.steps;
    // The last step is seen alone: the others run the same ops, and their times are told.
    std::optional<ObserverScope> watched;
    if (is_own) watched.emplace(comparison.candidate().world().observers(), coverage);
    const auto batch = is_own ? trainer::suite_batch(job, vocabulary, step) : data->batch((step - 1) * rows, rows);
    add(verdict, job, step, check_step(comparison, verdict.mesh, step, batch, schedule.learning_rate(step)), again);
  }
  note_memory(verdict.page);
  verdict.coverage = coverage.coverage();
  return verdict;
}

/// Bits have no bound: equal (0), or not (null). Else of the pair in double, and of the ops of the run that trains.
nlohmann::ordered_json error_over_bound(const MeshVerdict& verdict, bool bits) {
  if (bits) return verdict.agrees ? nlohmann::ordered_json(0.0) : nullptr;
  const double pair = std::max({verdict.loss, verdict.gradient, verdict.parameter}) / kFloat64Tolerance;
  return std::max(pair, verdict.ops ? verdict.ops->over_bound : 0.0);
}

nlohmann::ordered_json ops_json(const std::optional<OpCheck::Counts>& ops) {
  if (!ops) return nullptr;
  return {{"seen", ops->ops},
          {"compared", ops->compared_ops},
          {"moves_seen", ops->moves},
          {"moves_compared", ops->compared_moves},
          {"without_bound", ops->without_bound},
          {"worst_error_over_bound", ops->over_bound}};
}

void print_row(const MeshVerdict& verdict) {
  print_out("{:<34}{:<9}{:>9.1e}{:>11.1e}{:>12.1e}  {:<22}{:>9.2f} MB{:>8.2f}x\n", verdict.mesh,
            verdict.agrees ? "agrees" : "DIFFERS", verdict.loss, verdict.gradient, verdict.parameter, verdict.worst,
            verdict.bytes / 1e6, verdict.ratio);
  if (verdict.ops) print_out("    op by op: {}\n", verdict.ops->text());
  flush_out();
}

/// Bytes of a step beside native numerics, where there are any.
void print_price(const MeshVerdict& verdict) {
  if (!verdict.prices || verdict.prices->rows.empty()) return;
  print_out("\n{}: what a rank sends in a step\n", verdict.mesh);
  print_prices(*verdict.prices);
}

void add_prices(nlohmann::ordered_json& row, const trainer::PriceTable& prices) {
  row["native_bytes_per_step"] = prices.native_bytes;
  row["collectives"] = prices_json(prices);
  row["gathered"] = gathered_json(prices.gathered);
}

nlohmann::ordered_json json_of(const MeshVerdict& verdict, const trainer::Job& job) {
  const bool bits = job.numerics.is_canonical();
  nlohmann::ordered_json row{{"mesh", verdict.mesh},
                             {"verdict", verdict.agrees ? "pass" : "fail"},
                             {"domain", bits ? "native" : "float64"},
                             {"numerics", job.numerics.mode},
                             {"loss_max_relative", verdict.loss},
                             {"grad_max_relative", verdict.gradient},
                             {"parameter_max_relative", verdict.parameter},
                             {"worst_error_over_bound", error_over_bound(verdict, bits)},
                             {"differing_bits", bits ? nlohmann::ordered_json(verdict.differing_bits) : nullptr},
                             {"threads", at::get_num_threads()},
                             {"worst_op", verdict.worst},
                             {"ops", ops_json(verdict.ops)},
                             {"findings", verdict.findings},
                             {"bytes_per_step", verdict.bytes}};
  const bool was_watched = !verdict.coverage.rows.empty();  // not where an earlier step differs
  row["coverage"] = was_watched ? coverage_json(verdict.coverage) : nullptr;
  if (verdict.prices) add_prices(row, *verdict.prices);
  return row;
}

PageFile page_for(const VerifyOptions& options, const trainer::Job& job, size_t meshes) {
  PageFile file(options.html);
  if (!file.is_wanted()) return file;
  file.page = page_of(job, meshes);
  file.page.command = command_of("verify", options.job);
  if (!options.meshes.empty()) file.page.command += " --meshes " + shell_word(options.meshes);
  file.begin();
  return file;
}

void print_head(const trainer::Job& job) {
  print_out("{} steps and one on a batch of its own {} one device; worst relative difference per mesh\n",
            job.verify.steps, job.numerics.is_canonical() ? "bit by bit beside" : "in float64 beside");
  print_out("{:<34}{:<9}{:>9}{:>11}{:>12}  {:<22}{:>12}{:>9}\n", "mesh", "verdict", "loss", "gradients", "parameters",
            "worst op", "comm/step", "time");
}

/// Tells of each as soon as it is compared: what comes may not end well.
std::vector<MeshVerdict> verify_all(const VerifyOptions& options, const trainer::Job& job,
                                    std::span<const trainer::MeshDegrees> meshes, PageFile& file) {
  std::vector<MeshVerdict> verdicts;
  try {
    for (const auto& mesh : meshes) {
      const auto& verdict = verdicts.emplace_back(verify_mesh(job, mesh, options));
      file.page.meshes.push_back(verdict.page);
      file.update();
      print_row(verdict);
      if (!verdict.agrees) print_out("\n{}\n{}", verdict.finding, &mesh == &meshes.back() ? "" : "\n"), flush_out();
    }
  } catch (const std::exception& error) {
    file.end_by(error.what());
    throw;
  }
  return verdicts;
}

}  // namespace

ExitCode run_verify(const VerifyOptions& options, const trainer::Job& job,
                    std::span<const trainer::MeshDegrees> meshes) {
  check_floating_environment();
  auto file = page_for(options, job, meshes.size());
  print_head(job);
  const auto verdicts = verify_all(options, job, meshes, file);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  Coverage coverage;
  for (const auto& verdict : verdicts) {
    rows.push_back(json_of(verdict, job));
    coverage.add(verdict.coverage);
    print_price(verdict);
  }
  if (!options.output.quiet && std::ranges::all_of(verdicts, &MeshVerdict::agrees))
    print_out("{}", coverage_text(coverage));
  const bool all_agree = std::ranges::all_of(verdicts, &MeshVerdict::agrees);
  write_json(options.output, {{"job", job.job.description},
                              {"seed", job.debug.seed},
                              {"meshes", rows},
                              {"coverage", coverage_json(coverage)},
                              {"verdict", all_agree ? "pass" : "fail"}});
  file.finish();
  return all_agree ? ExitCode::kFine : ExitCode::kInconsistent;
}

}  // namespace lockstep::tool
