#include <ATen/Parallel.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/elementary/floating_environment.h"
#include "core/interruption.h"
#include "core/suggest.h"
#include "fuzz/checks/layout_checks.h"
#include "fuzz/checks/op_checks.h"
#include "fuzz/checks/program_checks.h"
#include "fuzz/search/case_file.h"
#include "fuzz/search/case_run.h"
#include "fuzz/steps/step_checks.h"
#include "runtime/dispatch/backend.h"
#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "tools/lockstep/reports/fuzz/checked_rules.h"
#include "tools/lockstep/reports/fuzz/fuzz_report.h"
#include "tools/lockstep/reports/json_output.h"

namespace lockstep::tool {
namespace {

fuzz::Checks checks_of(const std::string& kind) {
  if (kind == "ops") return fuzz::op_checks();
  if (kind == "programs") return fuzz::program_checks();
  if (kind == "layouts") return fuzz::layout_checks();
  return fuzz::step_checks();
}

std::string op_of(const std::string& check) { return check.substr(0, check.rfind('/')); }

[[noreturn]] void fail_unknown(const std::string& name, const char* what, const std::set<std::string>& known) {
  const std::vector<std::string> names(known.begin(), known.end());
  const auto close = nearest(name, names);
  fail<BadInput>("{} is no {}.{}", name, what, close ? fmt::format(" Did you mean {}?", *close) : "");
}

/// Those of an op, or the one of that name; "/gradients": that of every op.
fuzz::Checks chosen(fuzz::Checks checks, const std::string& op) {
  if (op.empty()) return checks;
  std::set<std::string> names;
  for (const auto& check : checks) names.insert(op_of(check.name)), names.insert(check.name);
  const bool of_all = op.front() == '/';
  std::erase_if(checks, [&](const auto& check) {
    return of_all ? !check.name.ends_with(op) : check.name != op && op_of(check.name) != op;
  });
  if (checks.empty()) fail_unknown(op, "row of the op table (lockstep rules lists them)", names);
  return checks;
}

const fuzz::Check& find_check(const fuzz::Checks& checks, const fuzz::CaseName& name) {
  std::set<std::string> names;
  for (const auto& check : checks) {
    if (check.name == name.check) return check;
    names.insert(check.name);
  }
  fail_unknown(name.check, "check", names);
}

std::vector<fuzz::CaseFile> cases_of(const FuzzOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(options.one_case, error);
  if (std::filesystem::is_directory(status)) return fuzz::read_case_files(options.one_case);
  if (std::filesystem::is_regular_file(status)) return {fuzz::read_case_file(options.one_case)};
  return {{"", options.kind, fuzz::parse_case_name(options.one_case)}};
}

/// What became of a case that may no longer be what it was when it was written.
fuzz::CaseOutcome outcome_of(const fuzz::Checks& checks, const fuzz::CaseFile& one, bool& is_stale) {
  try {
    auto outcome = fuzz::run_case(find_check(checks, one.name), one.name);
    is_stale = one.drawn != 0 && one.drawn != outcome.drawn;
    return outcome;
  } catch (const fuzz::NoSuchCase&) {
    if (one.path.empty()) throw;
    is_stale = true;
    return {fuzz::CaseOutcome::Kind::kLeftOut, ""};
  }
}

const char* verdict_of(const fuzz::CaseOutcome& outcome, bool is_stale) {
  if (is_stale) return "is drawn otherwise now";
  return outcome.kind == fuzz::CaseOutcome::Kind::kHeld ? "holds" : "is left out";
}

ExitCode run_cases(const FuzzOptions& options) {
  const auto checks = checks_of(options.kind);
  fuzz::SearchResult result;
  int64_t stale = 0;
  for (const auto& one : cases_of(options)) {
    if (one.kind != options.kind) fail<BadInput>("{} is a case of {}, not of {}.", one.path, one.kind, options.kind);
    bool is_stale = false;
    const auto outcome = outcome_of(checks, one, is_stale);
    ++result.cases, stale += is_stale;
    if (outcome.failed()) {
      result.failures.push_back({one.name, outcome.message});
      print_out("{}", failure_text(options.kind, result.failures.back(), one.path));
    } else if (!options.output.quiet) {
      print_out("{} {}\n", fuzz::to_text(one.name), verdict_of(outcome, is_stale));
    }
  }
  print_out("{} cases, {} failures", result.cases, result.failures.size());
  if (stale > 0) print_out("; {} are drawn otherwise than when they were written", stale);
  print_out("\n");
  write_json(options.output, search_json(options.kind, 0, 1, result));
  return result.failures.empty() ? ExitCode::kFine : ExitCode::kInconsistent;
}

uint64_t seed_of_now() {
  return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()) / 1000 % 1'000'000'000;
}

/// On one line of a terminal; elsewhere a line now and then.
class ProgressLine {
 public:
  void show(const fuzz::Progress& progress, const FuzzOptions& options) {
    const auto text = fmt::format("{} cases, {:.0f} a second, {} failures, {:.0f} s", progress.cases,
                                  static_cast<double>(progress.cases) / std::max(progress.seconds, 1e-3),
                                  progress.failures, progress.seconds);
    if (options.output.quiet || (!is_terminal_ && progress.seconds < next_)) return;
    next_ = progress.seconds + 10;
    print_err("{}fuzz {}: {}{}", is_terminal_ ? "\r" : "", options.kind, text, is_terminal_ ? "   " : "\n");
    any_ = true;
  }
  void end() {
    if (is_terminal_ && any_) print_err("\n");
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  double next_ = 0;
  bool any_ = false;
};

fuzz::SearchOptions search_options(const FuzzOptions& options, ProgressLine& line) {
  fuzz::SearchOptions wanted;
  wanted.seed = options.seed ? *options.seed : seed_of_now();
  wanted.seconds = options.cases ? 1e9 : options.seconds.value_or(60);
  wanted.cases = options.cases.value_or(0);
  wanted.first_only = options.first_only;
  wanted.workers = options.jobs.value_or(static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u)));
  wanted.on_progress = [&](const fuzz::Progress& progress) { line.show(progress, options); };
  wanted.should_stop = interruption_requested;
  return wanted;
}

}  // namespace

ExitCode run_fuzz(const FuzzOptions& options) {
  check_floating_environment();
  at::set_num_threads(1);
  register_backend();
  if (!options.one_case.empty()) return run_cases(options);
  const auto checks = chosen(checks_of(options.kind), options.op);
  ProgressLine line;
  const auto wanted = search_options(options, line);
  const InterruptionHandler handler;
  const auto result = fuzz::search(checks, wanted);
  line.end();
  for (const auto& failure : result.failures)
    print_out("{}",
              failure_text(options.kind, failure, fuzz::write_case_file(options.failures, options.kind, failure)));
  print_out("{}", search_text(options.kind, wanted.seed, wanted.workers, result));
  write_json(options.output, search_json(options.kind, wanted.seed, wanted.workers, result));
  if (!options.record.empty() && result.failures.empty()) record_checked(options.record, result);
  if (interruption_requested()) return ExitCode::kInterrupted;
  return result.failures.empty() ? ExitCode::kFine : ExitCode::kInconsistent;
}

}  // namespace lockstep::tool
