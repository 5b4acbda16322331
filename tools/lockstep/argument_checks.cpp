#include "tools/lockstep/argument_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/suggest.h"

namespace lockstep::tool {

void require_known(const std::string& name, std::string_view what, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  const auto close = nearest(name, names);
  fail<BadInput>("{} is not a {}.{} The {}s are {}.", name, what, close ? fmt::format(" Did you mean {}?", *close) : "",
                 what, fmt::join(names, ", "));
}

namespace {

/// Fifteen digits: more than anybody types, and exact in JSON's numbers.
std::optional<uint64_t> seed_of(std::string_view text) {
  constexpr size_t kMostDigits = 15;
  uint64_t seed = 0;
  const auto* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, seed);
  const bool is_seed = result.ec == std::errc{} && result.ptr == end && text.size() <= kMostDigits;
  return is_seed ? std::optional(seed) : std::nullopt;
}

}  // namespace

std::vector<uint64_t> seeds_of(const char* option, const std::string& text) {
  constexpr uint64_t kMost = 1000;
  const auto dots = text.find("..");
  const auto first = seed_of(std::string_view(text).substr(0, dots));
  const auto last = dots == text.npos ? first : seed_of(std::string_view(text).substr(dots + 2));
  if (!first || !last || *last < *first || *last - *first >= kMost)
    fail<BadInput>("{}: \"{}\" is no seed such as 7, and no run of {} seeds at most such as 1..5.", option, text,
                   kMost);
  std::vector<uint64_t> seeds(*last - *first + 1);
  std::iota(seeds.begin(), seeds.end(), *first);
  return seeds;
}

BenchOptions checked(const BenchOptions& bench) {
  require_known(bench.name, "benchmark",
                {"collectives", "dispatch", "forecast", "gpu", "month", "numerics", "peers", "processes", "record",
                 "rng", "scale", "step", "verify"});
  if (!bench.instructions.empty()) require_known(bench.instructions, "CPU level", {"baseline", "avx2", "avx512"});
  const auto has_rows = {"collectives", "forecast", "gpu", "numerics", "peers", "processes", "scale", "verify"};
  if (bench.rows && std::find(has_rows.begin(), has_rows.end(), bench.name) == has_rows.end())
    fail<BadInput>("--rows is for lockstep bench {}.", fmt::join(has_rows, ", "));
  require_known(bench.device, "device", {"cpu", "cuda"});
  if (bench.device != "cpu" && bench.name != "peers") fail<BadInput>("--device is for lockstep bench peers.");
  if (bench.profile && bench.name != "step") fail<BadInput>("--profile is for lockstep bench step.");
  if (!bench.hardware.empty() && bench.name != "forecast") fail<BadInput>("--hardware is for lockstep bench forecast.");
  if (bench.kills && bench.name != "month") fail<BadInput>("--kills is for lockstep bench month.");
  return bench;
}

MutateOptions checked(const MutateOptions& mutate) {
  for (int number = 1; number <= 21; ++number)
    if (mutate.of_class.empty() || mutate.of_class == fmt::format("M{}", number)) return mutate;
  fail<BadInput>("--class: there is no class {}; they are M1 to M21, as docs/mutation_score.md lists them.",
                 mutate.of_class);
}

ReplayOptions checked(const ReplayOptions& replay) {
  if (replay.folder.empty() && replay.case_file.empty())
    fail<BadInput>("folder is required, or --case. 'lockstep replay --help' tells more.");
  return replay;
}

}  // namespace lockstep::tool
