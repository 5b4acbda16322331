#include "tools/lockstep/reports/curves/run_curves.h"

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/files/random_access_file.h"
#include "trainer/job/job_file.h"
#include "trainer/job/mesh_degrees.h"

namespace lockstep::tool {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = int64_t{1} << 30;
constexpr const char* kFile = "metrics.jsonl";
constexpr const char* kStep = "step";

[[noreturn]] void fail_line(const std::string& path, size_t line, std::string_view why) {
  fail<FileError>(
      "{}:{}: {}; expected a line as docs/metrics.md shows it. If nobody needs the line, remove it; the others are "
      "fine "
      "to go on with.",
      path, line, why);
}

bool is_number_or_null(const nlohmann::json& value) { return value.is_number() || value.is_null(); }

/// Why an object cannot be a step; empty: it can.
std::string fault_of(const nlohmann::json& object) {
  if (object.is_discarded()) return "it is no JSON";
  if (!object.is_object() || !object.contains(kStep) || !object[kStep].is_number_integer()) return "it has no step";
  for (const auto& [name, value] : object.items())
    if (!is_number_or_null(value)) return fmt::format("{} is no number", name);
  return {};
}

class Collected {
 public:
  void add(const nlohmann::json& object) {
    const auto step = object[kStep].get<int64_t>();
    while (!run_.steps.empty() && run_.steps.back() >= step) drop_last();
    run_.steps.push_back(step);
    for (const auto& [name, value] : object.items())
      if (name != kStep) run_.fields[name].emplace_back(step, value.is_null() ? kNone : value.get<double>());
  }
  RunCurves take() { return std::move(run_); }

 private:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  void drop_last() {
    for (auto& [name, curve] : run_.fields)
      if (!curve.empty() && curve.back().first == run_.steps.back()) curve.pop_back();
    run_.steps.pop_back();
  }
  RunCurves run_;
};

/// Of a job that this build cannot read, or that is not there, nothing: the numbers do without it.
std::string job_text(const std::string& path) try {
  const auto job = trainer::parse_saved_job(RandomAccessFile(path).text(kMostBytes), path);
  return fmt::format("{} {} on {}, {} x {} tokens a step", job.model.name, job.model.flavor,
                     trainer::mesh_of(job).text(), job.training.global_batch_size, job.training.seq_len);
} catch (const Error&) {
  return {};
}

}  // namespace

const StepCurve& RunCurves::curve(const std::string& field) const {
  static const StepCurve empty;
  const auto found = fields.find(field);
  return found == fields.end() ? empty : found->second;
}

RunCurves parse_metrics(const std::string& text, const std::string& path) {
  Collected collected;
  size_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto object = nlohmann::json::parse(text.begin() + static_cast<int64_t>(begin),
                                              text.begin() + static_cast<int64_t>(end), nullptr, false);
    const bool is_cut = object.is_discarded() && end == text.size();
    if (const auto fault = is_cut ? "it ends in the middle" : fault_of(object); !fault.empty())
      fail_line(path, number + 1, fault);
    collected.add(object);
    begin = end + 1;
    ++number;
  }
  return collected.take();
}

RunCurves read_run(const std::string& folder) {
  std::error_code ignored;
  const auto path = (fs::path(folder) / kFile).string();
  if (!fs::is_directory(folder, ignored))
    fail<BadInput>("{} is no folder; expected one that lockstep train wrote (job.dump_folder).", folder);
  if (!fs::exists(path, ignored))
    fail<BadInput>("{} has no {}; expected a folder that lockstep train wrote (job.dump_folder).", folder, kFile);
  auto run = parse_metrics(RandomAccessFile(path).text(kMostBytes), path);
  if (run.steps.empty()) fail<BadInput>("{} has no step: its run has not finished one.", path);
  run.folder = folder;
  run.job = job_text((fs::path(folder) / "job.toml").string());
  return run;
}

}  // namespace lockstep::tool
