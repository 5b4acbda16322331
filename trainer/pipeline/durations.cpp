#include <charconv>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "trainer/pipeline/timeline.h"

namespace lockstep::pipeline {
namespace {

constexpr std::string_view kNames = "FBIWT";
/// Of an action: a picture shows the shortest beside the longest.
constexpr double kShortest = 1e-3, kLongest = 1e3;

/// "B=2": the index of its name, and the number.
std::optional<std::pair<size_t, double>> parsed(std::string_view text) {
  const auto name = text.empty() ? kNames.npos : kNames.find(text.front());
  if (name == kNames.npos || text.size() < 3 || text[1] != '=') return {};
  text.remove_prefix(2);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  const bool is_transfer = name == kActionKinds;
  if (!(number >= (is_transfer ? 0 : kShortest) && number <= kLongest)) return {};
  return {{name, number}};
}

}  // namespace

Durations parse_durations(std::string_view text, std::string_view where) {
  Durations durations;
  while (true) {
    const auto comma = text.find(',');
    const auto part = text.substr(0, comma);
    const auto time = parsed(part);
    if (!time)
      fail<BadInput>(
          "{}: \"{}\" is no time. F, B, I, W (from {} to {}) or T (transfer, from 0), = and a number were "
          "expected, such as F=1,B=2,I=1,W=1,T=0.",
          where, part, kShortest, kLongest);
    const auto [name, number] = *time;
    (name == kActionKinds ? durations.transfer : durations.of_kind[name]) = number;
    if (comma == text.npos) return durations;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace lockstep::pipeline
