#include <fmt/format.h>

#include "replay/view/html.h"
#include "replay/view/page_parts.h"
#include "tools/lockstep/schedule/schedule_facts.h"
#include "trainer/pipeline/pictures/labels.h"
#include "trainer/pipeline/pictures/svg_picture.h"

namespace lockstep::tool {
namespace {

using replay::cell;
using replay::escaped;
using replay::fact;

constexpr const char* kPageStyle = "h1{font-size:1.5em;margin:0 0 4px}.wide{overflow-x:auto}";

std::string table(const ScheduleFacts& facts) {
  std::string rows;
  for (int64_t rank = 0; rank < facts.ranks(); ++rank) {
    const auto index = static_cast<size_t>(rank);
    rows += "<tr>" + cell("rank", fmt::format("rank {}", rank)) + cell("stages", facts.stages_text(rank)) +
            cell("actions", replay::count_text(static_cast<int64_t>(facts.schedule.ranks[index].size()))) +
            cell("bubble", share_text(facts.timeline.bubble(rank))) +
            cell("gaps", share_text(facts.timeline.gaps(rank))) +
            cell("most activations", replay::count_text(facts.held.of_rank[index])) + "</tr>\n";
  }
  return replay::table({"rank", "stages", "actions", "bubble", "gaps", "most activations"}, rows);
}

}  // namespace

std::string schedule_page(const ScheduleFacts& facts) {
  auto html = replay::page_begin(facts.title(), std::string(replay::kPartsStyle) + kPageStyle);
  html += fmt::format("<main><h1>{}</h1>\n<dl>", escaped(facts.title()));
  html += fact("times", times_text(facts.durations)) + fact("length", fmt::format("{:g}", facts.timeline.length()));
  html += fact("bubble", share_text(facts.timeline.bubble()) + " of all ranks' time");
  html +=
      fact("gaps", share_text(facts.timeline.gaps()) + " of a rank's time between its first and last action, at most");
  html += "</dl>\n<div class=\"wide\">" + pipeline::svg_picture(facts.schedule, facts.timeline) + "</div>\n<p>" +
          escaped(pipeline::Labels(facts.schedule).legend()) + "</p>\n";
  return html + table(facts) + "</main>\n" + std::string(replay::kPageEnd);
}

}  // namespace lockstep::tool
