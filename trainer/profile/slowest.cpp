#include "trainer/profile/slowest.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "replay/view/step_costs.h"

namespace lockstep::trainer {
namespace {

/// What other ranks hear of: one of them is the slowest of all.
constexpr size_t kMostOps = 1;

std::vector<OpTime> slowest_ops(const std::vector<replay::ProcessTimeline>& processes) {
  std::vector<OpTime> ops;
  for (const auto& row : replay::costs_of(processes).rows)
    if (!row.is_collective && ops.size() < kMostOps) ops.push_back({row.name, row.time, row.times});
  return ops;
}

/// A process that simulates ranks does all of it once.
uint64_t waited_of(std::span<const replay::TimedStep> ranks) {
  uint64_t waited = 0;
  for (const auto nanoseconds : ranks.front().waited) waited += nanoseconds;
  return waited;
}

}  // namespace

ProcessTime time_of(std::span<const replay::TimedStep> ranks) {
  LOCKSTEP_CHECK(!ranks.empty());
  std::vector<replay::StepRecording> recordings;
  for (const auto& rank : ranks) recordings.push_back(rank.recording);
  const auto processes = replay::processes_of(recordings);
  return {processes.front().name(), processes.front().end(), waited_of(ranks), slowest_ops(processes)};
}

std::string to_text(const ProcessTime& process) {
  auto ops = nlohmann::json::array();
  for (const auto& op : process.ops) ops.push_back({op.name, op.nanoseconds, op.times});
  return nlohmann::json{process.name, process.length, process.waited, ops}.dump();
}

ProcessTime process_time_of(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  ProcessTime process{json.at(0), json.at(1), json.at(2), {}};
  for (const auto& op : json.at(3)) process.ops.push_back({op.at(0), op.at(1), op.at(2)});
  return process;
}

std::string slowest_text(std::span<const ProcessTime> processes) {
  LOCKSTEP_CHECK(!processes.empty());
  const auto* slowest = &processes.front();
  const ProcessTime* with_op = nullptr;
  double own = 0;
  for (const auto& process : processes) {
    own += static_cast<double>(process.own()) / static_cast<double>(processes.size());
    if (process.own() > slowest->own()) slowest = &process;
    const bool has_op = !process.ops.empty();
    if (has_op && (!with_op || process.ops[0].nanoseconds > with_op->ops[0].nanoseconds)) with_op = &process;
  }
  auto text = fmt::format("slowest {}: {} of its own", slowest->name, replay::time_text(slowest->own()));
  if (processes.size() > 1)
    text += fmt::format(", all ranks {} in the mean", replay::time_text(static_cast<uint64_t>(own)));
  if (with_op)
    text += fmt::format("; slowest op {}: {} in {} call{} on {}", with_op->ops[0].name,
                        replay::time_text(with_op->ops[0].nanoseconds), with_op->ops[0].times,
                        with_op->ops[0].times == 1 ? "" : "s", with_op->name);
  return text;
}

}  // namespace lockstep::trainer
