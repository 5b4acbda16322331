#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "replay/format/recording.h"

/// The numerics version (core/numerics_version.h) of a recording: a fact of StepRecording::machine.
namespace lockstep::replay {

inline constexpr std::string_view kNumericsFact = "numerics_version";

/// What made the recording; nothing where it does not say, as recordings that are older than the fact. Does not throw:
/// what is no version (validate() refuses it) is nothing, too.
std::optional<int64_t> numerics_version_of(const StepRecording& recording);

/// The fact's value: a decimal number from 0 to kMostNumericsVersion without sign or leading zeros; nothing for any
/// other text.
std::optional<int64_t> parse_numerics_version(std::string_view text);

}  // namespace lockstep::replay
