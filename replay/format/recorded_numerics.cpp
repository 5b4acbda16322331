#include "replay/format/recorded_numerics.h"

#include <charconv>

#include "core/numerics_version.h"

namespace lockstep::replay {

std::optional<int64_t> numerics_version_of(const StepRecording& recording) {
  for (const auto& [key, value] : recording.machine)
    if (key == kNumericsFact) return parse_numerics_version(value);
  return std::nullopt;
}

std::optional<int64_t> parse_numerics_version(std::string_view text) {
  int64_t version = -1;
  const auto* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, version);
  const bool is_version = result.ec == std::errc() && version >= 0 && version <= kMostNumericsVersion;
  return is_version && std::to_string(version) == text ? std::optional(version) : std::nullopt;
}

}  // namespace lockstep::replay
