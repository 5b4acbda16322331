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
  const auto has_rows = {"collectives", "gpu", "numerics", "processes", "verify"};
  if (bench.rows && std::find(has_rows.begin(), has_rows.end(), bench.name) == has_rows.end())
    fail<BadInput>("--rows is for lockstep bench {}.", fmt::join(has_rows, ", "));
  return bench;
}

MutateOptions checked(const MutateOptions& mutate) {
  for (int number = 1; number <= 20; ++number)
    if (mutate.of_class.empty() || mutate.of_class == fmt::format("M{}", number)) return mutate;
  fail<BadInput>("--class: there is no class {}; they are M1 to M20, as docs/mutation_score.md lists them.",
                 mutate.of_class);
}

ReplayOptions checked(const ReplayOptions& replay) {
  if (replay.folder.empty() && replay.case_file.empty())
    fail<BadInput>("folder is required, or --case. 'lockstep replay --help' tells more.");
  return replay;
}

}  // namespace lockstep::tool
