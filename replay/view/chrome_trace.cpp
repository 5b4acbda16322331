#include "replay/view/chrome_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/collective_kind.h"
#include "replay/view/trace_diff.h"

namespace lockstep::replay {
namespace {

using nlohmann::ordered_json;

constexpr int kOps = 1, kCollectives = 2;

ordered_json event(int rank, int track, const std::string& name, uint64_t begin, uint64_t end) {
  return {{"ph", "X"},
          {"pid", rank},
          {"tid", track},
          {"name", name},
          {"ts", static_cast<double>(begin) / 1e3},
          {"dur", static_cast<double>(std::max(begin, end) - begin) / 1e3}};
}

ordered_json title(const char* what, int rank, int track, const std::string& name) {
  return {{"ph", "M"}, {"pid", rank}, {"tid", track}, {"name", what}, {"args", {{"name", name}}}};
}

uint64_t bytes_of(const RecordedCollective& collective, const StepRecording& recording) {
  uint64_t bytes = 0;
  for (uint32_t p = 0; p < collective.pieces; ++p) bytes += recording.pieces[collective.first_piece + p].bytes;
  return bytes;
}

void add(ordered_json& events, const StepRecording& recording, std::span<const uint64_t> waited) {
  events.push_back(title("process_name", recording.rank, 0, fmt::format("rank {}", recording.rank)));
  events.push_back(title("thread_name", recording.rank, kOps, "ops"));
  events.push_back(title("thread_name", recording.rank, kCollectives, "collectives"));
  for (const auto& op : recording.ops) {
    events.push_back(event(recording.rank, kOps, recording.names[op.id.op], op.begin, op.end));
    events.back()["args"] = {{"id", text_of(op.id, recording)}};
  }
  for (size_t c = 0; c < recording.collectives.size(); ++c) {
    const auto& collective = recording.collectives[c];
    const auto name = fmt::format("{} {}", kCollectiveNames[collective.kind], recording.names[collective.axis]);
    events.push_back(event(recording.rank, kCollectives, name, collective.begin, collective.end));
    events.back()["args"] = {{"id", text_of(collective.id, recording)},
                             {"number", collective.number},
                             {"received_bytes", bytes_of(collective, recording)}};
    if (c < waited.size()) events.back()["args"]["waited_us"] = static_cast<double>(waited[c]) / 1e3;
  }
}

}  // namespace

std::string chrome_trace(std::span<const StepRecording> ranks, std::span<const std::vector<uint64_t>> waited) {
  auto events = ordered_json::array();
  for (size_t r = 0; r < ranks.size(); ++r)
    add(events, ranks[r], r < waited.size() ? std::span(waited[r]) : std::span<const uint64_t>());
  return ordered_json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump(1) + "\n";
}

}  // namespace lockstep::replay
