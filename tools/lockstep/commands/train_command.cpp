#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/elementary/floating_environment.h"
#include "core/interruption.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/commands/met_processes.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/dry_run_report.h"
#include "tools/lockstep/reports/json_output.h"
#include "tools/lockstep/reports/page_facts.h"
#include "tools/lockstep/reports/page_file.h"
#include "trainer/data/text_dataset.h"
#include "trainer/identity/run_facts.h"
#include "trainer/identity/run_start.h"
#include "trainer/loop/train_loop.h"
#include "trainer/verify/finding.h"

namespace lockstep::tool {
namespace {

/// The page of --html: one mesh, what it sends and holds, every step that is checked. Without a file it does nothing.
class TrainPage {
 public:
  TrainPage(std::string path, const trainer::Job& job, const JobArguments& arguments)
      : job_(job), file_(std::move(path)) {
    if (!file_.is_wanted()) return;
    file_.page = page_of(job, 1);
    const auto command = command_of("train", arguments);
    file_.page.command = command + " --verify";
    file_.page.meshes.push_back({.mesh = trainer::mesh_of(job).text()});
    file_.begin();
  }

  /// What the mesh sends and holds is known before the first step, and there whatever the run comes to.
  void add_plan() {
    if (!file_.is_wanted()) return;
    const auto dry = trainer::dry_run(job_);
    add_prices(mesh(), trainer::price_table(dry, native(dry)), job_.numerics.is_canonical());
    add_state(mesh(), dry);
    file_.update();
  }

  /// `again`: the next command, if there is none better.
  void add(int64_t step, const trainer::StepCheck& check, const std::string& again) {
    if (!file_.is_wanted()) return;
    add_check(mesh(), step, check);
    if (check.agrees()) return file_.update_now_and_then();
    mesh().findings.push_back(finding_on_page(step, check, again));
    file_.update();
  }

  void end_by(const std::string& reason) { file_.end_by(reason); }

  /// Now the findings' own texts are there, with where the ops' cases are.
  void finish(const trainer::TrainOutcome& outcome) {
    if (!file_.is_wanted()) return;
    file_.page.ended_by = outcome.interrupted_by;
    for (const auto& report : outcome.findings) complete(mesh(), report);
    note_memory(mesh());
    file_.finish();
  }

 private:
  PageMesh& mesh() { return file_.page.meshes.front(); }
  trainer::DryRun native(const trainer::DryRun& dry) const {
    return job_.numerics.is_canonical() ? trainer::dry_run(trainer::with_native_numerics(job_)) : dry;
  }

  const trainer::Job& job_;
  PageFile file_;
};

/// What to run after a finding without a case: the step once more, recorded, and the first wrong rank's part of it
/// alone. A run that was recorded has it already.
std::string command_again(const JobArguments& arguments, const trainer::Job& job, const trainer::StepCheck& check,
                          int64_t step) {
  const int rank = check.blame && !check.blame->ranks.empty() ? check.blame->ranks[0] : 0;
  const auto& folder = job.record.folder;
  const auto replay =
      fmt::format("lockstep replay {} --rank {} --step {}", folder.empty() ? "traces" : shell_word(folder), rank, step);
  return folder.empty() ? command_of("train", arguments) + " --verify --record traces; " + replay : replay;
}

/// Lines on stdout, the progress bar on stderr.
class Reporter {
 public:
  Reporter(const JobArguments& arguments, const trainer::Job& job, bool quiet, TrainPage& page)
      : arguments_(arguments),
        job_(job),
        quiet_(quiet),
        draws_(trainer::may_draw_progress(quiet)),
        bar_(job.training.steps, to_stderr),
        page_(page) {}

  trainer::TrainEvents events() {
    trainer::TrainEvents events;
    events.on_step = [this](const trainer::StepMetrics& metrics) { step(metrics); };
    events.on_check = [this](int64_t step, const trainer::StepCheck& check) {
      count(check);
      if (!check.agrees()) again_ = command_again(arguments_, job_, check, step);
      page_.add(step, check, again_);
    };
    events.on_note = [this](const std::string& note) { line(note + "\n"); };
    return events;
  }

  void line(const std::string& text) {
    if (quiet_) return;
    if (draws_) bar_.clear();
    print_out("{}", text);
    flush_out();
  }

  /// Copies that have drifted apart are no finding of a step: the same command without a rank.
  void add_next(std::vector<std::string>& findings) const {
    const auto once_more = command_of("train", arguments_) + " --verify";
    for (auto& finding : findings) finding = trainer::with_next(finding, again_.empty() ? once_more : again_);
  }

  void summary(const trainer::TrainOutcome& outcome) {
    if (draws_) bar_.clear();
    if (checked_ > 0) line(verdict(outcome.findings.empty()));
    if (const auto speed = trainer::checked_speed(outcome.steps); speed && !ops_)
      line(trainer::speed_line(*speed) + "\n");
    if (!outcome.steps.empty())
      line(fmt::format("loss      {:.4f} after step {}{}\n", outcome.steps.back().loss, outcome.steps.back().step,
                       entropy_text()));
    line(fmt::format("state     {}\n", outcome.state_digest));
    if (!outcome.saved_to.empty()) line(fmt::format("saved     {}\n", outcome.saved_to));
  }

 private:
  /// What a model that ignores context could reach; of a text, which is bytes.
  std::string entropy_text() const {
    if (job_.training.dataset != "text") return "";
    return fmt::format("; unigram entropy of the text {:.4f}", trainer::unigram_entropy(job_.training.dataset_path[0]));
  }

  static void to_stderr(std::string_view text) { print_err("{}", text); }

  std::string verdict(bool agrees) const {
    const auto what = fmt::format("{}  {} steps on {} beside one device", agrees ? "verified" : "DIFFERS ", checked_,
                                  trainer::mesh_of(job_).text());
    if (!job_.verify.has(trainer::kStepMode)) return what + ops_text(",") + "\n";
    if (trainer::StepVerifier::compares_bits(job_))
      return fmt::format("{}, bit by bit: {} bits differ in loss, gradients, norm, parameters and optimizer state{}\n",
                         what, differing_bits_, ops_text("\n         "));
    return fmt::format("{}, float64: worst relative difference loss {:.1e}, gradients {:.1e}, parameters {:.1e}{}\n",
                       what, loss_, gradient_, parameter_, ops_text("\n         "));
  }

  /// What mode ops compared, if it did.
  std::string ops_text(const char* before) const {
    const auto whole = run_over_bound_ > 0 ? fmt::format("{} as a whole: at most {:.2g} of what its roundings may do",
                                                         before, run_over_bound_)
                                           : "";
    return (ops_ ? fmt::format("{} op by op: {}", before, ops_->text()) : "") + whole;
  }

  void step(const trainer::StepMetrics& metrics) {
    if (!handler_) handler_.emplace();
    const bool logs =
        metrics.step % job_.metrics.log_freq == 0 || metrics.step == 1 || metrics.step == job_.training.steps;
    if (logs) line(trainer::log_line(metrics, job_.training.steps) + "\n");
    if (draws_) bar_.update(metrics.step, metrics.seconds_left);
  }

  void count(const trainer::StepCheck& check) {
    ++checked_;
    differing_bits_ += check.comparison.differing_bits;
    loss_ = std::max(loss_, check.comparison.loss);
    gradient_ = std::max(gradient_, check.comparison.gradient);
    parameter_ = std::max(parameter_, check.comparison.parameter);
    if (check.ops) ops_ = check.ops;
    run_over_bound_ = std::max(run_over_bound_, check.run_over_bound);
  }

  const JobArguments& arguments_;
  const trainer::Job& job_;
  bool quiet_, draws_;
  trainer::ProgressBar bar_;
  TrainPage& page_;
  std::optional<InterruptionHandler> handler_;  ///< as soon as there is a step to tell of: until it is told
  int64_t checked_ = 0, differing_bits_ = 0;
  double loss_ = 0, gradient_ = 0, parameter_ = 0;
  std::optional<OpCheck::Counts> ops_;
  double run_over_bound_ = 0;
  std::string again_;  ///< after the finding, if a step has one
};

nlohmann::ordered_json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nullptr;
}

nlohmann::ordered_json to_json(const trainer::TrainOutcome& outcome) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const auto& metrics : outcome.steps)
    steps.push_back({{"step", metrics.step},
                     {"loss", metrics.loss},
                     {"grad_norm", metrics.grad_norm},
                     {"tokens_per_second", metrics.tokens_per_second},
                     {"checked_tokens_per_second", number_or_null(metrics.checked_tokens_per_second)}});
  return {{"steps", steps}, {"state_digest", outcome.state_digest}, {"findings", outcome.findings}};
}

/// Of a launch of more ranks than the mesh has (parallelism.elastic).
bool waited_as_spare(const trainer::Job& job) {
  const auto launcher = launcher_here();
  const auto mesh = trainer::mesh_of(job);
  if (launcher.launch.simulated || launcher.launch.rank < mesh.ranks()) return false;
  print_err("rank {} waits as a spare of mesh {}\n", launcher.launch.rank, mesh.text());
  trainer::wait_as_spare(launcher, environment_variable, job.comm);
  return true;
}

/// The option for a checkpoint that is not in the job's folder, because another run's are.
std::string other_folder(const trainer::Job& job, const std::string& saved_to) {
  const std::filesystem::path root = trainer::checkpoint_root(job),
                              actual = std::filesystem::path(saved_to).parent_path();
  if (actual == root) return {};
  const auto folder = std::filesystem::path(job.checkpoint.folder).parent_path() / actual.filename();
  return " --checkpoint.folder " + folder.string();
}

/// What ends it is on the page, and in the other ranks' errors, too.
trainer::TrainOutcome train_reported(const trainer::Job& job, Reporter& reporter, TrainPage& page,
                                     const trainer::Processes& processes) try {
  return said_last(processes, [&] {
    page.add_plan();
    return trainer::train(job, reporter.events(), processes);
  });
} catch (const std::exception& error) {
  page.end_by(error.what());
  throw;
}

}  // namespace

ExitCode run_train(const TrainOptions& options, const trainer::Job& job) {
  check_floating_environment();
  if (options.dry_run) return report_dry_run(options, job);
  if (waited_as_spare(job)) return ExitCode::kFine;
  const auto processes = meet(
      options.output, job, [&] { return trainer::run_facts(job); }, trainer::mesh_of(job).ranks());
  TrainPage page(processes.is_first() ? options.html : "", job, options.job);
  Reporter reporter(options.job, job, options.output.quiet || !processes.is_first(), page);
  auto outcome = train_reported(job, reporter, page, processes);
  reporter.add_next(outcome.findings);
  reporter.summary(outcome);
  if (processes.is_first()) write_json(options.output, to_json(outcome));
  page.finish(outcome);
  for (const auto& finding : outcome.findings)
    if (processes.is_first()) print_out("{}\n", finding);
  if (!outcome.findings.empty()) return ExitCode::kInconsistent;
  if (!outcome.interrupted_by.empty())
    fail<Interrupted>(
        "{}: stopped after step {}; the state is in {}. The same command with --checkpoint.enable true{} goes on",
        outcome.interrupted_by, outcome.steps.back().step, outcome.saved_to, other_folder(job, outcome.saved_to));
  return ExitCode::kFine;
}

}  // namespace lockstep::tool
