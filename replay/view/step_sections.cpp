#include "replay/view/step_sections.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::replay {
namespace {

struct Part {
  int32_t microbatch;
  uint8_t phase;
  TimeWindow window;
  bool is_same(const Part& other) const { return microbatch == other.microbatch && phase == other.phase; }
};

uint8_t phase_of(const RecordedId& id) {
  constexpr auto kRecompute = static_cast<uint8_t>(Phase::kRecompute),
                 kBackward = static_cast<uint8_t>(Phase::kBackward);
  return id.phase == kRecompute ? kBackward : id.phase;
}

std::vector<Part> parts_of(const ProcessTimeline& process) {
  std::vector<Part> parts;
  for (const auto& op : process.ops) {
    const Part part{op.id.microbatch, phase_of(op.id), op.window};
    if (!parts.empty() && parts.back().is_same(part)) continue;
    if (!parts.empty()) parts.back().window.end = op.window.begin;
    parts.push_back(part);
  }
  if (parts.empty()) return parts;
  parts.front().window.begin = 0;
  parts.back().window.end = process.end();
  return parts;
}

std::string name_of(const Part& part, bool has_microbatches) {
  const char* phase = part.phase < std::size(kPhaseNames) ? kPhaseNames[part.phase] : "unknown phase";
  return has_microbatches ? fmt::format("microbatch {}, {}", part.microbatch, phase) : phase;
}

}  // namespace

std::vector<StepSection> sections_of(const std::vector<ProcessTimeline>& processes) {
  std::vector<Part> all;
  for (const auto& process : processes) {
    const auto parts = parts_of(process);
    if (all.empty()) all = parts;
    if (!std::equal(all.begin(), all.end(), parts.begin(), parts.end(),
                    [](const Part& a, const Part& b) { return a.is_same(b); }))
      continue;
    for (size_t i = 0; i < all.size(); ++i)
      all[i].window = {std::min(all[i].window.begin, parts[i].window.begin),
                       std::max(all[i].window.end, parts[i].window.end)};
  }
  const bool has_microbatches =
      std::any_of(all.begin(), all.end(), [](const Part& part) { return part.microbatch > 0; });
  std::vector<StepSection> sections;
  for (const auto& part : all) sections.push_back({name_of(part, has_microbatches), part.window});
  return sections;
}

std::vector<TimeWindow> pieces_of(TimeWindow window, size_t most) {
  std::vector<TimeWindow> pieces;
  const auto part = round_part(window.length(), most);
  for (auto begin = window.begin; begin < window.end;) {
    const auto left = part - begin % part;
    const auto end = window.end - begin < left ? window.end : begin + left;
    pieces.push_back({begin, end});
    begin = end;
  }
  return pieces;
}

}  // namespace lockstep::replay
