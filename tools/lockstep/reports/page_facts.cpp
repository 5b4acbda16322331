#include "tools/lockstep/reports/page_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "consistency/difference.h"
#include "core/numerics_version.h"
#include "trainer/metrics/metrics.h"
#include "trainer/recording/machine_facts.h"
#include "trainer/verify/finding.h"

namespace lockstep::tool {
namespace {

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  ::gmtime_r(&now, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts)};
}

std::string fact_of(const trainer::MachineFacts& facts, std::string_view name) {
  for (const auto& [key, value] : facts)
    if (key == name) return value;
  return "unknown";
}

/// "layers.0.up" of "exp_avg of layers.0.up.weight".
std::string without_parameter(std::string name) {
  if (const auto of = name.rfind(" of "); of != name.npos) name.erase(0, of + 4);
  const auto dot = name.rfind('.');
  return dot == name.npos ? name : name.substr(0, dot);
}

bool is_of_state(const Difference& difference) {
  return difference.kind.starts_with("parameter") || difference.kind.starts_with("optimizer state");
}

std::vector<PageModule> modules_of(const Comparison& comparison) {
  std::vector<PageModule> modules;
  for (const auto& difference : comparison.beyond) {
    const auto name = difference.name.empty() ? difference.kind : without_parameter(difference.name);
    auto module = std::ranges::find(modules, name, &PageModule::name);
    if (module == modules.end()) module = modules.insert(module, PageModule{.name = name});
    auto& worst = is_of_state(difference) ? module->parameter : module->gradient;
    worst = std::max(worst, difference.relative);
    module->wrong += difference.wrong_elements;
    module->elements += difference.elements;
  }
  return modules;
}

}  // namespace

VerifyPage page_of(const trainer::Job& job, size_t planned) {
  const bool bits = job.numerics.is_canonical();
  const auto facts = trainer::machine_facts(job.training.device);
  VerifyPage page;
  page.job = job.job.description;
  page.model = fmt::format("{} {}", job.model.name, job.model.flavor);
  page.batch = fmt::format("{} x {} tokens, {}, seed {}", job.training.global_batch_size, job.training.seq_len,
                           job.training.mixed_precision_param, job.debug.seed);
  page.numerics = bits ? "canonical, " + numerics_version_text() : job.numerics.mode;
  page.machine = fmt::format("{}, {}; threads: {}; {}", fact_of(facts, "device"), fact_of(facts, "processor"),
                             fact_of(facts, "threads"), fact_of(facts, "instruction_set"));
  page.build = fmt::format("build {}, LibTorch {}", fact_of(facts, "build_id"), fact_of(facts, "libtorch"));
  page.date = date_text();
  page.tolerance = bits ? 0 : kFloat64Tolerance;
  page.planned = planned;
  return page;
}

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return text;
  std::string word = "'";
  for (const char each : text) word += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return word + "'";
}

std::string command_of(const char* name, const JobArguments& arguments) {
  auto command = fmt::format("lockstep {} {}", name, shell_word(arguments.file));
  for (const auto& plugin : arguments.plugins) command += " --plugin " + shell_word(plugin);
  for (const auto& setting : arguments.overrides)
    command += fmt::format(" --{} {}", setting.key, shell_word(setting.written));
  return command;
}

void add_check(PageMesh& mesh, int64_t step, const trainer::StepCheck& check) {
  const auto& comparison = check.comparison;
  mesh.agrees = mesh.agrees && check.agrees();
  mesh.steps.push_back({step, comparison.loss, comparison.gradient, comparison.parameter, comparison.differing_bits});
  if (check.seconds <= 0) return;  // a start: no step was run
  mesh.bytes = check.bytes;
  mesh.ratio = check.seconds_ratio;
}

void add_prices(PageMesh& mesh, const trainer::PriceTable& prices, bool canonical) {
  mesh.bytes = prices.canonical_bytes;
  for (const auto& price : prices.rows)
    mesh.traffic.push_back({to_text(price.kind), price.axis, price.canonical.count, price.canonical.bytes,
                            canonical ? std::optional(price.native.bytes) : std::nullopt});
  for (const auto& [gather, plans] : prices.gathered)
    mesh.gathered.push_back(
        fmt::format("{} ({} {}): {}", gather.op, plans, plans == 1 ? "plan" : "plans", gather.reason));
}

void add_state(PageMesh& mesh, const trainer::DryRun& dry) {
  const auto [least, most] = std::ranges::minmax_element(dry.classes, {}, &trainer::RankClass::state_bytes);
  if (least == dry.classes.end()) return;
  mesh.least_state = least->state_bytes, mesh.most_state = most->state_bytes;
}

void note_memory(PageMesh& mesh) { mesh.resident = static_cast<double>(trainer::resident_bytes()); }

PageFinding finding_on_page(int64_t step, const trainer::StepCheck& check, const std::string& again) {
  const auto blame = check.blame.value_or(Blame{});
  PageFinding finding{.step = step, .kind = blame.kind, .op = blame.op, .id = blame.id};
  finding.module = blame.phase == "optimizer" ? without_parameter(blame.module) : blame.module;
  finding.rule = blame.rule, finding.layouts = blame.layouts;
  finding.collective = blame.collective, finding.axis = blame.axis;
  if (!blame.group.empty()) finding.group = ranks_text(blame.group);
  if (!blame.ranks.empty()) finding.ranks = ranks_text(blame.ranks);
  finding.difference = check.difference, finding.worst = blame.worst;
  finding.pattern = blame.pattern, finding.before = blame.before, finding.limits = blame.limits;
  finding.transient = blame.transient;
  finding.modules = modules_of(check.comparison);
  finding.next = again;
  return finding;
}

void complete(PageMesh& mesh, const std::string& report) {
  mesh.agrees = false;
  if (mesh.findings.empty()) {
    const auto last = mesh.steps.empty() ? 0 : mesh.steps.back().step;
    mesh.findings.push_back({.step = last, .difference = report.substr(0, report.find('\n'))});
  }
  auto& finding = mesh.findings.back();
  finding.report = report;
  if (const auto command = trainer::next_of(report); !command.empty()) finding.next = command;
}

}  // namespace lockstep::tool
