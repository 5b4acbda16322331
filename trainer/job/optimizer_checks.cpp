#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "trainer/job/job_keys.h"
#include "trainer/job/optimizer_settings.h"
#include "trainer/names/choices.h"

namespace lockstep::trainer {
namespace {

constexpr Choice kWithMoments[] = {{"AdamW"}, {"Adam"}, {"Lion"}, {"Muon"}, {"Ranger21"}};
constexpr Choice kWithEpsilon[] = {{"AdamW"}, {"Adam"}, {"Muon"}, {"Ranger21"}};
constexpr Choice kWithMomentum[] = {{"SGD"}, {"Muon"}};
constexpr Choice kAdam[] = {{"AdamW"}, {"Adam"}};
constexpr Choice kSgd[] = {{"SGD"}};
constexpr Choice kRanger21[] = {{"Ranger21"}};

/// The optimizers that read a key; those that stand nowhere are read by all.
struct Readers {
  std::string_view key;
  Choices optimizers;
};
constexpr Readers kReaders[] = {
    {"optimizer.beta1", kWithMoments},     {"optimizer.beta2", kWithMoments}, {"optimizer.eps", kWithEpsilon},
    {"optimizer.momentum", kWithMomentum}, {"optimizer.nesterov", kSgd},      {"optimizer.offload_state", kAdam},
};

Choices readers_of(const Key& key) {
  if (key.section == "ranger21") return kRanger21;
  for (const auto& row : kReaders)
    if (row.key == key.dotted()) return row.optimizers;
  return {};
}

bool is_set(const Key& key, const Job& job) { return key.text(job) != key.text(Job{}); }

void require_keys_read(const Job& job) {
  for (const auto& key : job_keys()) {
    const auto readers = readers_of(key);
    if (readers.empty() || holds(readers, job.optimizer.name) || !is_set(key, job)) continue;
    fail<BadInput>("{} {} is of {}; optimizer.name is \"{}\". Leave it out or choose {}.", key.dotted(), key.text(job),
                   names_text(readers), job.optimizer.name,
                   readers.size() == 1 ? fmt::format("\"{}\"", readers[0].name) : "one of these");
  }
}

/// A component of Ranger21 gives the rate in place of these keys of [lr_scheduler].
void require_one_schedule(const Job& job, bool component, std::string_view name, std::span<const char* const> keys) {
  if (job.optimizer.name != "Ranger21" || !component) return;
  for (const auto* dotted : keys) {
    const auto& key = *find_job_key(dotted);
    if (is_set(key, job))
      fail<BadInput>(
          "{} {} would not be heeded: ranger21.{} gives the rate there. Leave it out or set ranger21.{} to "
          "false.",
          dotted, key.text(job), name, name);
  }
}

void require_groups_heeded(const OptimizerSection& optimizer) {
  for (const auto& group : optimizer.groups)
    if (group.muon && optimizer.name != "Muon")
      fail<BadInput>(
          "optimizer.groups: muon of \"{}\" is of Muon; optimizer.name is \"{}\". Leave it out or choose \"Muon\".",
          group.pattern, optimizer.name);
}

/// Without a rank nothing of [lora] is read.
void require_lora_heeded(const Job& job) {
  if (job.lora.enabled()) {
    if (!job.model.converters.empty())
      fail<BadInput>("lora.rank {} and model.converters: changes of low rank to quantised linear maps are not offered.",
                     job.lora.rank);
    if (job.lora.targets.empty()) fail<BadInput>("lora.rank is {}, but lora.targets names no weights.", job.lora.rank);
    return;
  }
  for (const auto& key : job_keys())
    if (key.section == "lora" && is_set(key, job))
      fail<BadInput>("{} {} is of changes of low rank; lora.rank is 0. Leave it out or give a rank.", key.dotted(),
                     key.text(job));
}

}  // namespace

void require_optimizer_heeds(const Job& job) {
  if (job.validation.averages && !job.optimizer.ema_decay)
    fail<BadInput>("validation.averages needs optimizer.ema_decay, which keeps averages; there is none.");
  require_lora_heeded(job);
  require_keys_read(job);
  if (job.optimizer.nesterov && job.optimizer.momentum.value_or(0) <= 0)
    fail<BadInput>("optimizer.nesterov needs optimizer.momentum above 0; there is none.");
  constexpr const char* kWarmup[] = {"lr_scheduler.warmup_steps"};
  constexpr const char* kDecay[] = {"lr_scheduler.decay_ratio", "lr_scheduler.decay_type",
                                    "lr_scheduler.min_lr_factor"};
  require_one_schedule(job, job.ranger21.linear_warmup, "linear_warmup", kWarmup);
  require_one_schedule(job, job.ranger21.explore_exploit, "explore_exploit", kDecay);
  require_groups_heeded(job.optimizer);
}

void require_float_range(const OptimizerSection& optimizer) {
  constexpr double kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::min();
  const auto require = [&](const char* key, double value, bool fits) {
    if (!fits)
      fail<BadInput>("optimizer.{} is {}, which float32 cannot hold: from {:.2g} to {:.2g}.", key, value, kLeast,
                     kMost);
  };
  require("lr", optimizer.lr, optimizer.lr <= kMost);
  require("weight_decay", optimizer.weight_decay, optimizer.weight_decay <= kMost);
  require("eps", optimizer.eps, optimizer.eps >= kLeast && optimizer.eps <= kMost);
}

}  // namespace lockstep::trainer
