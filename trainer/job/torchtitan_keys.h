#pragma once
#include <span>
#include <string_view>
#include <vector>

/// torchtitan v0.2.2 keys that Lockstep knows but does not support: accepted at a value that asks for nothing.
namespace lockstep::trainer {

struct TorchtitanKey {
  std::string_view pattern;  ///< "section.key", or "section.*" for all keys below
  /// Accepted values as written, strings without quotes, separated by '|'; "*" = any value asks for nothing.
  std::string_view neutral;
  std::string_view why = {};  ///< for "*": why any value may stand
};

std::span<const TorchtitanKey> torchtitan_keys();

/// The row that covers "section.key", or null. Exact names win over patterns.
const TorchtitanKey* find_torchtitan_key(std::string_view dotted);

/// The accepted values, the one to advise first; {"*"} when any may stand.
std::vector<std::string_view> neutral_values(const TorchtitanKey& key);

/// Whether `value`, as written without quotes, asks for nothing.
bool asks_for_nothing(const TorchtitanKey& key, std::string_view value);

}  // namespace lockstep::trainer
