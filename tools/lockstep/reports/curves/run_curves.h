#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::tool {

/// A number of each step, by ascending step; NaN where a step has none.
using StepCurve = std::vector<std::pair<int64_t, double>>;

/// The numbers of one run.
struct RunCurves {
  std::string folder;
  std::string name;                         ///< on the page: the folder, as short as it is told from others
  std::string job;                          ///< what was trained on what, in a line; empty: not known
  std::map<std::string, StepCurve> fields;  ///< by the name in metrics.jsonl, without "step"
  std::vector<int64_t> steps;

  /// Empty where the run does not have the field.
  const StepCurve& curve(const std::string& field) const;
};

/// Reads "metrics.jsonl" of an output folder, and "job.toml" if it is there and can be read. Of a step that is there
/// twice the last line counts, and it ends those after it: a run that went on from before it has taken them again.
///
/// BadInput where there is no such folder, no such file or no step in it; FileError, naming the line, where one is not
/// as docs/metrics.md says.
RunCurves read_run(const std::string& folder);

/// The curves of a text of that kind; `path`: for messages.
RunCurves parse_metrics(const std::string& text, const std::string& path);

}  // namespace lockstep::tool
