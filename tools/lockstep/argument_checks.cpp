#include "tools/lockstep/argument_checks.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/suggest.h"

namespace lockstep::tool {

void require_known(const std::string& name, std::string_view what, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const auto close = nearest(name, names);
  fail<BadInput>("{} is not a {}.{} The {}s are {}.", name, what, close ? fmt::format(" Did you mean {}?", *close) : "",
                 what, fmt::join(names, ", "));
}

BenchOptions checked(const BenchOptions& bench) {
  require_known(bench.name, "benchmark",
                {"collectives", "dispatch", "gpu", "numerics", "processes", "record", "rng", "step", "verify"});
  if (!bench.instructions.empty()) require_known(bench.instructions, "CPU level", {"baseline", "avx2", "avx512"});
  const bool has_rows =
      bench.name == "collectives" || bench.name == "gpu" || bench.name == "numerics" || bench.name == "processes";
  if (bench.rows && !has_rows) fail<BadInput>("--rows is for lockstep bench collectives, gpu, numerics and processes.");
  return bench;
}

MutateOptions checked(const MutateOptions& mutate) {
  std::vector<std::string> classes;
  for (int number = 1; number <= 20; ++number) classes.push_back(fmt::format("M{}", number));
  if (!mutate.of_class.empty()) require_known(mutate.of_class, "class", classes);
  return mutate;
}

ReplayOptions checked(const ReplayOptions& replay) {
  if (replay.folder.empty() && replay.case_file.empty())
    fail<BadInput>("folder is required, or --case. 'lockstep replay --help' tells more.");
  return replay;
}

}  // namespace lockstep::tool
