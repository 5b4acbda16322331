#include "replay/capture/step_log.h"

namespace lockstep::replay {

Name NameTable::operator[](std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  names_.emplace_back(text);
  return numbers_.emplace(text, static_cast<Name>(names_.size() - 1)).first->second;
}

void StepLog::begin() {
  collectives_on_.clear();
  ops_.clear();
  running_.clear();
  start_ = Clock::now();
}

uint64_t StepLog::now() const {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count());
}

RecordedId StepLog::recorded_id(const OpId& id) {
  return {static_cast<uint8_t>(id.phase), static_cast<int32_t>(id.microbatch), names_[id.module], names_[id.op],
          static_cast<uint32_t>(id.occurrence)};
}

uint32_t StepLog::begin_op(const OpId& id) {
  running_.push_back(static_cast<uint32_t>(ops_.size()));
  ops_.push_back({recorded_id(id), now(), 0});
  return running_.back();
}

uint32_t StepLog::end_op() {
  const auto op = running_.back();
  running_.pop_back();
  ops_[op].end = now();
  return op;
}

void StepLog::end_all() {
  while (!running_.empty()) end_op();
}

std::vector<RecordedCollective> StepLog::begin_collective(const CollectiveEvent& event) {
  const auto id = recorded_id(event.id);
  const Name mesh = names_[event.mesh.text()];
  const Name axis = names_[event.mesh.axes()[static_cast<size_t>(event.axis)].name];
  const auto number = collectives_on_[mesh]++;
  const auto begin = now();
  std::vector<RecordedCollective> collectives;
  for (const auto group : event.groups)
    collectives.push_back({id, number, mesh, axis, static_cast<uint8_t>(event.kind), static_cast<int8_t>(event.dtype),
                           event.purpose, group, 0, 0, begin, begin});
  return collectives;
}

}  // namespace lockstep::replay
