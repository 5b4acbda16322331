#include "replay/view/process_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace lockstep::replay {
namespace {

/// A recording may be anybody's: what ends before it begins takes no time.
TimeWindow window_of(uint64_t begin, uint64_t end) { return {begin, std::max(begin, end)}; }

/// Each to the lowest lane that is free when it begins. REQUIRES: by begin, what lasts longer first.
template <class Timed>
void take_lanes(std::vector<Timed>& all) {
  std::vector<uint64_t> busy;  // until when, by lane
  for (auto& one : all) {
    const auto free = std::find_if(busy.begin(), busy.end(), [&](uint64_t until) { return until <= one.window.begin; });
    one.lane = static_cast<size_t>(free - busy.begin());
    if (free == busy.end())
      busy.push_back(one.window.end);
    else
      *free = one.window.end;
  }
}

template <class Timed>
void order(std::vector<Timed>& all) {
  std::stable_sort(all.begin(), all.end(), [](const Timed& a, const Timed& b) {
    return a.window.begin != b.window.begin ? a.window.begin < b.window.begin : a.window.end > b.window.end;
  });
  take_lanes(all);
}

std::vector<TimedOp> ops_of(const StepRecording& recording) {
  std::vector<TimedOp> ops;
  for (const auto& op : recording.ops)
    ops.push_back({window_of(op.begin, op.end), op.id, 0, recording.names[op.id.op]});
  order(ops);
  return ops;
}

uint64_t bytes_of(const RecordedCollective& collective, const StepRecording& recording) {
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < collective.pieces; ++p) bytes += recording.pieces[collective.first_piece + p].bytes;
  return bytes;
}

/// Ranks number the collectives of a mesh alike.
std::vector<TimedCollective> collectives_of(const std::vector<const StepRecording*>& ranks) {
  std::map<std::pair<std::string, uint64_t>, TimedCollective> merged;
  for (const auto* recording : ranks)
    for (const auto& each : recording->collectives) {
      const auto window = window_of(each.begin, each.end);
      const auto name = kind_text(each.kind) + " on " + recording->names[each.axis];
      auto& all =
          merged.try_emplace({recording->names[each.mesh], each.number}, TimedCollective{window, each.id, 0, name})
              .first->second;
      all.window = {std::min(all.window.begin, window.begin), std::max(all.window.end, window.end)};
      all.bytes += bytes_of(each, *recording);
    }
  std::vector<TimedCollective> collectives;
  for (auto& [place, collective] : merged) collectives.push_back(std::move(collective));
  order(collectives);
  return collectives;
}

/// "0-3", "0, 2".
std::string numbers_text(std::vector<int> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const bool is_range = numbers.back() - numbers.front() + 1 == static_cast<int>(numbers.size());
  if (is_range && numbers.size() > 2) return fmt::format("{}-{}", numbers.front(), numbers.back());
  std::string text;
  for (const int number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ", ", number);
  return text;
}

bool is_of_one_process(const StepRecording& left, const StepRecording& right) {
  return !left.ops.empty() && left.step == right.step && left.ops == right.ops && left.names == right.names;
}

}  // namespace

std::string ProcessTimeline::name() const {
  std::vector<int> numbers;
  for (const auto* rank : ranks) numbers.push_back(rank->rank);
  return (numbers.size() == 1 ? "rank " : "ranks ") + numbers_text(numbers);
}

uint64_t ProcessTimeline::end() const {
  uint64_t end = 0;
  for (const auto& op : ops) end = std::max(end, op.window.end);
  for (const auto& collective : collectives) end = std::max(end, collective.window.end);
  return end;
}

std::vector<ProcessTimeline> processes_of(std::span<const StepRecording> ranks) {
  std::vector<ProcessTimeline> processes;
  for (const auto& recording : ranks) {
    const auto found = std::find_if(processes.begin(), processes.end(), [&](const ProcessTimeline& process) {
      return is_of_one_process(process.recording(), recording);
    });
    if (found != processes.end())
      found->ranks.push_back(&recording);
    else
      processes.push_back({.ranks = {&recording}, .ops = {}, .collectives = {}});
  }
  for (auto& process : processes) {
    process.ops = ops_of(process.recording());
    process.collectives = collectives_of(process.ranks);
  }
  return processes;
}

}  // namespace lockstep::replay
