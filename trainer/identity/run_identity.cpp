#include "trainer/identity/run_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/digest/digest.h"
#include "trainer/job/job_keys.h"

namespace lockstep::trainer {
namespace {

constexpr std::array<std::string_view, 10> kSectionsWithoutBits = {
    "job",    "parallelism", "activation_checkpoint", "checkpoint", "metrics", "comm", "profiling", "validation",
    "verify", "record"};
/// Data are known by their digest, the schedule's length stands for both keys that give it.
constexpr std::array<std::string_view, 6> kKeysWithoutBits = {"training.dataset_path",    "training.local_batch_size",
                                                              "training.steps",           "training.device",
                                                              "lr_scheduler.total_steps", "optimizer.offload_state"};

bool has_bits(const Key& key) {
  const auto holds = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (key.dotted() == "job.plugins") return true;
  return !holds(kSectionsWithoutBits, key.section) && !holds(kKeysWithoutBits, key.dotted());
}

}  // namespace

Facts identity_facts(const Job& job, const std::string& data) {
  Facts facts;
  for (const auto& key : job_keys())
    if (has_bits(key)) facts.push_back(fact_of(key, job));
  const auto length = job.lr_scheduler.total_steps.value_or(job.training.steps);
  facts.emplace_back("lr_scheduler.total_steps", std::to_string(length));
  const auto& weights = job.checkpoint.initial_load_digest;
  facts.emplace_back("checkpoint.initial_load_path", weights.empty() ? "drawn weights" : "weights " + weights);
  if (!data.empty()) facts.emplace_back("training.dataset_path", "data " + data);
  return facts;
}

std::string identity_text(const Facts& facts, const std::vector<RunOrigin::Parent>& parents) {
  Digester digester;
  for (const auto& [name, value] : facts) digester.update(fmt::format("{}={}\n", name, value));
  for (const auto& [identity, step] : parents) digester.update(fmt::format("{}@{}\n", identity, step));
  return digester.result().text();
}

std::vector<ChangedFact> changed_facts(const Facts& before, const Facts& now) {
  std::vector<ChangedFact> changed;
  for (const auto& [name, value] : now) {
    const auto* was = find_fact(before, name);
    if (was && *was != value) changed.push_back({name, *was, value});
  }
  return changed;
}

}  // namespace lockstep::trainer
