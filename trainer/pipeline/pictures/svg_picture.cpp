#include "trainer/pipeline/pictures/svg_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/pipeline/pictures/labels.h"

namespace lockstep::pipeline {
namespace {

constexpr double kRow = 24, kHead = 4, kNames = 64, kCharacter = 8, kPadding = 6, kLongest = 20000;

/// Hue of each kind: F, B, I, W.
constexpr int kHues[kActionKinds] = {212, 142, 172, 42};

/// Labels fit into the shortest action, unless the drawing became longer than browsers draw.
double points_per_unit(const Timeline& timeline, size_t label) {
  double shortest = timeline.length();
  for (const auto& rank : timeline.ranks)
    for (const auto& interval : rank) shortest = std::min(shortest, interval.end - interval.begin);
  return std::min((static_cast<double>(label) * kCharacter + kPadding) / shortest, kLongest / timeline.length());
}

std::string colour(const Action& action, const Labels& labels) {
  const auto step = std::min<size_t>(labels.number_on_rank(action.stage), 4);
  return fmt::format("hsl({},65%,{}%)", kHues[static_cast<size_t>(action.kind)], 58 + 7 * step);
}

std::string box(const Action& action, const Interval& interval, double y, double scale, const Labels& labels,
                bool is_paired) {
  const auto label = labels.of(action);
  const double x = kNames + interval.begin * scale, width = (interval.end - interval.begin) * scale;
  const bool fits = width >= static_cast<double>(label.size()) * kCharacter;
  return fmt::format(
      "<g><title>{}: {:g} to {:g}</title><rect x=\"{:.2f}\" y=\"{:g}\" width=\"{:.2f}\" height=\"{:g}\" fill=\"{}\" "
      "stroke=\"{}\"/>{}</g>\n",
      text_of(action), interval.begin, interval.end, x, y, width, kRow - 2, colour(action, labels),
      is_paired ? "#222" : "#fff",
      fits ? fmt::format("<text x=\"{:.2f}\" y=\"{:g}\" text-anchor=\"middle\" fill=\"#111\">{}</text>", x + width / 2,
                         y + kRow - 8, label)
           : "");
}

std::string row(const Schedule& schedule, const Timeline& timeline, size_t rank, double scale, const Labels& labels) {
  const double y = kHead + static_cast<double>(rank) * kRow;
  auto text = fmt::format("<text x=\"0\" y=\"{:g}\" fill=\"currentColor\">rank {}</text>\n", y + kRow - 8, rank);
  const auto& actions = schedule.ranks[rank];
  for (size_t i = 0; i < actions.size(); ++i) {
    const bool is_paired = actions[i].overlaps_next || (i > 0 && actions[i - 1].overlaps_next);
    text += box(actions[i], timeline.ranks[rank][i], y, scale, labels, is_paired);
  }
  return text;
}

}  // namespace

std::string svg_picture(const Schedule& schedule, const Timeline& timeline) {
  const Labels labels(schedule);
  const double scale = points_per_unit(timeline, labels.width());
  const double width = kNames + timeline.length() * scale + 1;
  const double height = kHead + static_cast<double>(schedule.ranks.size()) * kRow;
  auto text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" viewBox=\"0 0 {:.0f} {:.0f}\" "
      "font-family=\"monospace\" font-size=\"12\">\n",
      width, height, width, height);
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) text += row(schedule, timeline, rank, scale, labels);
  return text + "</svg>\n";
}

}  // namespace lockstep::pipeline
