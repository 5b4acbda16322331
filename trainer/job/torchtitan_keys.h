#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/job/job.h"
#include "trainer/job/job_setting.h"

/// torchtitan v0.2.2 keys that Lockstep knows but does not support: accepted at a value that asks for nothing, and at
/// others where a run can go on with something else that it tells. And what keys that both have mean here and not
/// there.
namespace lockstep::trainer {

struct TorchtitanKey {
  std::string_view pattern;  ///< "section.key", or "section.*" for all keys below
  /// Accepted values as written, strings without quotes, separated by '|'; "*" = any value asks for nothing.
  std::string_view neutral;
  std::string_view why = {};      ///< for "*": why any value may stand
  std::string_view instead = {};  ///< what a run does at other values; empty: they are refused
};

std::span<const TorchtitanKey> torchtitan_keys();

/// The row that covers "section.key", or null. Exact names win over patterns.
const TorchtitanKey* find_torchtitan_key(std::string_view dotted);

/// The accepted values, the one to advise first; {"*"} when any may stand.
std::vector<std::string_view> neutral_values(const TorchtitanKey& key);

/// Whether `value`, as written without quotes, asks for nothing.
bool asks_for_nothing(const TorchtitanKey& key, std::string_view value);

/// A value of one of Lockstep's own keys that torchtitan knows and Lockstep does not: what a run takes in its place.
/// Without that it is refused.
struct TorchtitanValue {
  std::string_view key, value;
  std::string_view stand_in = {}, instead = {};
  std::string_view with = {};  ///< only where the job names this key, too; else the value is refused
};

/// The row of this value, or null.
const TorchtitanValue* find_torchtitan_value(std::string_view dotted, std::string_view value);

/// A key that does something else than torchtitan's of its name. The one place that knows: docs/job.md, --help and the
/// first lines of a run read it.
struct TorchtitanDifference {
  std::string_view key;   ///< "section.key"
  std::string_view what;  ///< completes "Differs from torchtitan: "
  /// What it comes to in a job (`asked`: as written, `resolved`: as run) in a line; empty: nothing. Null: never more
  /// than a default or an error.
  std::string (*in_job)(const Job& asked, const Job& resolved) = nullptr;
  std::string_view their_default = {};  ///< where it is another than ours, as written without quotes
  /// Whether that matters to a job that does not name the key. Null: to all.
  bool (*matters)(const Job& asked) = nullptr;
};

std::span<const TorchtitanDifference> torchtitan_differences();

/// Of a job whose file names keys or values of torchtitan's alone, and so was written for it: the differences whose
/// defaults it leaves to torchtitan, where that matters.
std::vector<const TorchtitanDifference*> meant_defaults(std::span<const Setting> settings, const Job& asked);

/// "Differs from torchtitan: ...", or nothing for a key that means the same.
std::string difference_text(std::string_view dotted);

/// A line for each difference that changes what this job does.
std::vector<std::string> differences_in(const Job& asked, const Job& resolved);

}  // namespace lockstep::trainer
