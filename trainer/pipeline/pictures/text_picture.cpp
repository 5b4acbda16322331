#include "trainer/pipeline/pictures/text_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trainer/pipeline/pictures/labels.h"

namespace lockstep::pipeline {
namespace {

double shortest_of(const Timeline& timeline) {
  double least = timeline.length();
  for (const auto& rank : timeline.ranks)
    for (const auto& interval : rank) least = std::min(least, interval.end - interval.begin);
  return least;
}

/// Columns of a unit of time: so many that every label fits, or else as many as fit side by side, but so many that the
/// shortest action is seen.
double scale_of(double length, double shortest, size_t label, int64_t columns) {
  const double wanted = static_cast<double>(label) / shortest;
  const double fitting = std::floor(static_cast<double>(columns) / length * shortest) / shortest;
  return std::min(wanted, std::max(fitting, 1 / shortest));
}

std::string drawn(const std::string& label, size_t width, const Action& action) {
  if (label.size() <= width) return label + std::string(width - label.size(), '-');
  const char letter = label[label.find_first_not_of("0123456789")], digit = label.back();
  if (width == 1) return {action.kind == ActionKind::kForward ? digit : letter};
  return std::string{letter, digit} + std::string(width - 2, '-');
}

/// As far as there is room.
std::string line_of(const Schedule& schedule, const Timeline& timeline, size_t rank, const Labels& labels, double scale,
                    size_t room) {
  const auto column = [&](double time) {
    return static_cast<size_t>(std::llround(std::min(time * scale, static_cast<double>(room) + 2)));
  };
  std::string line;
  for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
    const auto& interval = timeline.ranks[rank][i];
    line.resize(std::max(line.size(), column(interval.begin)), '.');
    const size_t end = column(interval.end);
    const auto& action = schedule.ranks[rank][i];
    if (end > line.size()) line += drawn(labels.of(action), end - line.size(), action);
  }
  line.resize(std::min(column(timeline.length()), room), '.');
  return line;
}

}  // namespace

std::string text_picture(const Schedule& schedule, const Timeline& timeline, int64_t columns) {
  const Labels labels(schedule);
  const auto name_width = fmt::formatted_size("rank {}  ", schedule.ranks.size() - 1);
  const auto room = static_cast<size_t>(std::max<int64_t>(columns - static_cast<int64_t>(name_width), 16));
  const double length = timeline.length(), shortest = shortest_of(timeline);
  const double scale = scale_of(length, shortest, labels.width(), static_cast<int64_t>(room));
  std::string text;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    text += fmt::format("{:<{}}{}\n", fmt::format("rank {}", rank), name_width,
                        line_of(schedule, timeline, rank, labels, scale, room));
  }
  text += labels.legend() + "\n";
  if (scale * shortest < static_cast<double>(labels.width()))
    text += "narrow ones have the last digit of the microbatch, backwards of one column their letter\n";
  if (const double drawn_length = std::round(length * scale); drawn_length > static_cast<double>(room))
    text += fmt::format("cut: the first {:.0f} % of the time; --html draws all of it\n",
                        100.0 * static_cast<double>(room) / drawn_length);
  return text;
}

}  // namespace lockstep::pipeline
