#include "tools/lockstep/commands/verified_jobs.h"

#include <algorithm>

#include "tools/lockstep/commands.h"
#include "tools/lockstep/console.h"
#include "trainer/job/job_keys.h"
#include "trainer/verify/odd_shapes.h"

namespace lockstep::tool {
namespace {

VerifiedJob of_odd_shapes(uint64_t seed, const JobArguments& asked, const trainer::Job& job,
                          std::span<const trainer::MeshDegrees> meshes) {
  VerifiedJob verified{.job = job, .arguments = asked, .seed = seed, .drawn = trainer::odd_shapes(seed, job, meshes)};
  // What was asked for stays, but the degrees of the job's own mesh, which is none of those that are compared.
  const auto is_asked = [&](std::string_view key) {
    return std::ranges::find(asked.overrides, key, &trainer::Setting::key) != asked.overrides.end();
  };
  std::erase_if(verified.drawn, [&](const trainer::Setting& setting) {
    const bool is_beside_type = setting.key == "training.mixed_precision_float32";  // goes with a drawn type
    return (is_asked(setting.key) && !setting.key.ends_with("_degree")) ||
           (is_beside_type && is_asked("training.mixed_precision_param"));
  });
  auto& overrides = verified.arguments.overrides;
  overrides.insert(overrides.end(), verified.drawn.begin(), verified.drawn.end());
  verified.job = trainer::with_settings(job, verified.drawn);
  require_meshes_fit(verified.job, meshes);
  return verified;
}

nlohmann::ordered_json json_of(const VerifiedJob& verified) {
  nlohmann::ordered_json overrides = nlohmann::ordered_json::object();
  for (const auto& setting : verified.drawn) overrides[setting.key] = setting.written;
  return {{"seed", verified.seed.value()}, {"overrides", overrides}};
}

}  // namespace

std::vector<VerifiedJob> verified_jobs(const VerifyOptions& options, const trainer::Job& job,
                                       std::span<const trainer::MeshDegrees> meshes) {
  if (options.odd_shapes.empty()) return {{.job = job, .arguments = options.job}};
  std::vector<VerifiedJob> jobs;
  for (const auto seed : options.odd_shapes) jobs.push_back(of_odd_shapes(seed, options.job, job, meshes));
  return jobs;
}

void begin(const VerifiedJob& verified, VerifyReport& report) {
  if (!verified.seed) return;
  report.odd_shapes.push_back(json_of(verified));
  print_out("odd shapes {}: {}\n", *verified.seed, trainer::text_of(verified.drawn));
  flush_out();
}

std::string seeds_text(std::span<const uint64_t> seeds) {
  if (seeds.empty()) return "";
  return seeds.size() == 1 ? fmt::format("{}", seeds[0]) : fmt::format("{}..{}", seeds.front(), seeds.back());
}

}  // namespace lockstep::tool
