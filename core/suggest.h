#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

/// Insertions, deletions, substitutions and swaps of neighbours that turn one text into the other (optimal string
/// alignment distance).
int edit_distance(std::string_view left, std::string_view right);

/// The candidate closest to `text`, for "Did you mean ...?"; none when even the closest is far (more edits than a third
/// of the longer name, or than two for short ones). Among equally close ones, the first.
std::optional<std::string> nearest(std::string_view text, std::span<const std::string> candidates);

}  // namespace lockstep
