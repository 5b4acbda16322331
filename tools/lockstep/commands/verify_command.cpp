#include <ATen/Parallel.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/elementary/floating_environment.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/commands/met_processes.h"
#include "tools/lockstep/commands/verified_jobs.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/coverage_report.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/page_facts.h"
#include "tools/lockstep/reports/page_file.h"
#include "tools/lockstep/reports/verify/joined_check.h"
#include "tools/lockstep/reports/verify/loss_table.h"
#include "tools/lockstep/reports/verify/mesh_verdict.h"
#include "tools/lockstep/reports/verify/price_report.h"
#include "trainer/data/dataset.h"
#include "trainer/identity/run_facts.h"
#include "trainer/optim/schedule.h"
#include "trainer/verify/finding.h"
#include "trainer/verify/mesh_comparison.h"
#include "trainer/verify/suite_batch.h"

namespace lockstep::tool {
namespace {

/// What the step cannot be compared for, on which mesh.
trainer::StepCheck check_step(trainer::MeshComparison& comparison, const std::string& mesh, int64_t step,
                              const trainer::TokenBatch& batch, double rate) {
  try {
    return comparison.check(step, batch, rate);
  } catch (const Inconsistency& error) {
    fail<Inconsistency>("mesh {}, {}", mesh, error.what());
  }
}

/// Counts what is sent: for the table of prices, and for the page, if one is written. Prices of shapes that nobody
/// trains are of no use.
void count_traffic(MeshVerdict& verdict, const VerifiedJob& verified, const trainer::TrainingRun::Options& options,
                   bool has_page) {
  const auto& job = verified.job;
  const bool canonical = job.numerics.is_canonical(), priced = canonical && !verified.seed;
  if (!priced && !has_page) return;
  const auto dry = trainer::dry_run(job, options);
  const auto prices =
      trainer::price_table(dry, canonical ? trainer::dry_run(trainer::with_native_numerics(job), options) : dry);
  add_prices(verdict.page, prices, canonical);
  add_state(verdict.page, dry);
  if (priced) verdict.prices = prices;
}

/// Compares this mesh alone, up to this step.
std::string command_again(JobArguments arguments, const std::string& mesh, int64_t step) {
  std::erase_if(arguments.overrides, [](const trainer::Setting& setting) { return setting.key == "verify.steps"; });
  return fmt::format("{} --meshes {} --verify.steps {}", command_of("verify", arguments), shell_word(mesh), step);
}

/// On the mesh, with the rank of this process alone where there are several.
trainer::TrainingRun::Options options_on(const trainer::MeshDegrees& mesh, const trainer::Processes& processes) {
  trainer::TrainingRun::Options options;
  options.mesh = mesh;
  options.transport = processes.transport;
  if (processes.transport) options.local_ranks = {processes.rank};
  return options;
}

/// A finding is the same on all ranks, and known to each: a collective of the mesh if there is one.
trainer::Finding finding_on(const Mesh& mesh, const trainer::StepCheck& check, const std::string& folder,
                            const std::string& again) {
  return check.agrees() ? trainer::Finding() : trainer::with_next(trainer::agreed_finding(mesh, check, folder), again);
}

/// Nothing is compared yet.
MeshVerdict verdict_on(const VerifiedJob& verified, const trainer::MeshDegrees& mesh) {
  MeshVerdict verdict;
  verdict.mesh = mesh.text();
  verdict.odd_shapes = verified.seed;
  verdict.page.mesh = verified.seed ? fmt::format("{}, odd shapes {}", verdict.mesh, *verified.seed) : verdict.mesh;
  return verdict;
}

MeshVerdict verify_mesh(const VerifiedJob& verified, const trainer::MeshDegrees& mesh,
                        const trainer::Processes& processes, bool has_page) {
  const auto& job = verified.job;
  trainer::MeshComparison comparison(job, options_on(mesh, processes));
  auto& candidate = comparison.candidate();
  const trainer::LearningRateSchedule schedule(job);
  const int64_t rows = job.training.global_batch_size, vocabulary = candidate.model().vocabulary();
  const auto data = trainer::make_dataset(job, vocabulary);
  auto verdict = verdict_on(verified, mesh);
  if (processes.is_first()) count_traffic(verdict, verified, options_on(mesh, {}), has_page);
  CoverageObserver coverage;
  for (int64_t step = 1; step <= job.verify.steps + 1 && verdict.agrees; ++step) {
    const bool is_own = step > job.verify.steps;
    // The last step is seen alone: the others run the same ops, and their times are told.
    std::optional<ObserverScope> watched;
    if (is_own) watched.emplace(candidate.world().observers(), coverage);
    const auto batch = is_own ? trainer::suite_batch(job, vocabulary, step) : data->batch((step - 1) * rows, rows);
    auto check = check_step(comparison, verdict.mesh, step, batch, schedule.learning_rate(step));
    watched.reset();
    if (processes.transport) join(check, candidate.mesh());
    const auto again = command_again(verified.arguments, verdict.mesh, std::min(step, job.verify.steps));
    add(verdict, step, check, finding_on(candidate.mesh(), check, job.job.dump_folder, again));
  }
  note_memory(verdict.page);
  verdict.coverage = coverage.coverage();
  if (processes.transport) join(verdict.coverage, candidate.mesh());
  return verdict;
}

void print_row(const MeshVerdict& verdict) {
  print_out("{:<34}{:<9}{:>9.1e}{:>11.1e}{:>12.1e}  {:<22}{:>9.2f} MB{:>8.2f}x\n", verdict.mesh,
            verdict.agrees ? "agrees" : "DIFFERS", verdict.loss, verdict.gradient, verdict.parameter, verdict.worst,
            verdict.bytes / 1e6, verdict.ratio);
  if (verdict.ops) print_out("    op by op: {}\n", verdict.ops->text());
  if (verdict.run_over_bound > 0)
    print_out("    the run that trains: at most {:.2g} of what its roundings may do\n", verdict.run_over_bound);
  if (!verdict.decided_otherwise.empty())
    print_out("    not compared as a whole, each op alone: roundings decided otherwise in {}\n",
              verdict.decided_otherwise);
  flush_out();
}

/// Bytes of a step beside native numerics, where there are any.
void print_price(const MeshVerdict& verdict) {
  if (!verdict.prices || verdict.prices->rows.empty()) return;
  print_out("\n{}: what a rank sends in a step\n", verdict.mesh);
  print_prices(*verdict.prices);
}

PageFile page_for(const VerifyOptions& options, const trainer::Job& job, size_t meshes) {
  PageFile file(options.html);
  if (!file.is_wanted()) return file;
  file.page = page_of(job, meshes);
  file.page.command = command_of("verify", options.job);
  if (!options.meshes.empty()) file.page.command += " --meshes " + shell_word(options.meshes);
  if (!options.odd_shapes.empty()) {
    const auto seeds = seeds_text(options.odd_shapes);
    file.page.command += " --odd-shapes " + seeds;
    file.page.batch = "odd shapes " + seeds;
  }
  file.begin();
  return file;
}

void print_head(const trainer::Job& job) {
  print_out("{} steps and one on a batch of its own {} one device; worst relative difference per mesh\n",
            job.verify.steps, job.numerics.is_canonical() ? "bit by bit beside" : "in float64 beside");
  print_out("{:<34}{:<9}{:>9}{:>11}{:>12}  {:<22}{:>12}{:>9}\n", "mesh", "verdict", "loss", "gradients", "parameters",
            "worst op", "comm/step", "time");
}

/// Tells of a mesh as soon as it is compared: what comes may not end well.
void tell(const MeshVerdict& verdict, const VerifyOptions& options, const trainer::Job& job, PageFile& file,
          const VerifyReport& report) {
  file.page.meshes.push_back(verdict.page);
  file.update();
  update_json(options.output, json_of(report, job));
  print_row(verdict);
  const bool is_last = report.verdicts.size() == report.planned;
  if (!verdict.agrees) print_out("\n{}\n{}", verdict.finding, is_last ? "" : "\n"), flush_out();
}

void verify_all(const VerifyOptions& options, std::span<const VerifiedJob> jobs,
                std::span<const trainer::MeshDegrees> meshes, const trainer::Processes& processes, PageFile& file,
                VerifyReport& report) {
  for (const auto& verified : jobs) try {
      begin(verified, report);
      for (const auto& mesh : meshes)
        tell(report.verdicts.emplace_back(verify_mesh(verified, mesh, processes, !options.html.empty())), options,
             verified.job, file, report);
    } catch (const std::exception& error) {
      report.ended_by = error.what();
      update_json(options.output, json_of(report, verified.job));
      file.end_by(error.what());
      throw;
    }
}

/// What processes have to agree on before they compare anything: meshes and shapes, too.
trainer::Facts facts_of(const VerifyOptions& options, const trainer::Job& job,
                        std::span<const trainer::MeshDegrees> meshes) {
  auto facts = trainer::run_facts(job);
  std::string listed;
  for (const auto& mesh : meshes) listed += (listed.empty() ? "" : "; ") + mesh.text();
  facts.emplace_back("the meshes to verify", listed);
  facts.emplace_back("the seeds of odd shapes", seeds_text(options.odd_shapes));
  return facts;
}

/// Of several processes the first one tells what all have found.
VerifyOptions options_of(const trainer::Processes& processes, VerifyOptions options) {
  if (processes.is_first()) return options;
  mute_out();
  options.html.clear(), options.output.json.clear();
  return options;
}

ExitCode verify_in(const trainer::Processes& processes, const VerifyOptions& options, const trainer::Job& job,
                   std::span<const trainer::MeshDegrees> meshes) {
  const auto jobs = verified_jobs(options, job, meshes);
  VerifyReport report{.planned = jobs.size() * meshes.size(), .processes = processes.world};
  auto file = page_for(options, job, report.planned);
  print_head(job);
  verify_all(options, jobs, meshes, processes, file, report);
  report.is_finished = true;
  print_out("{}", loss_table(report.verdicts, options.losses));
  for (const auto& verdict : report.verdicts) print_price(verdict);
  if (!options.output.quiet) print_out("{}", coverage_text(report.coverage()));
  write_json(options.output, json_of(report, job));
  file.finish();
  return report.agrees() ? ExitCode::kFine : ExitCode::kInconsistent;
}

}  // namespace

ExitCode run_verify(const VerifyOptions& options, const trainer::Job& job,
                    std::span<const trainer::MeshDegrees> meshes) {
  check_floating_environment();
  const auto processes = meet(
      options.output, job, [&] { return facts_of(options, job, meshes); }, meshes.front().ranks());
  return said_last(processes, [&] { return verify_in(processes, options_of(processes, options), job, meshes); });
}

}  // namespace lockstep::tool
