#include "consistency/old_values.h"

#include <fmt/format.h>

#include <utility>

#include "consistency/origin.h"
#include "consistency/traced_op.h"
#include "runtime/planning/plan.h"

namespace lockstep {
namespace {

std::string key_of(const OpId& id, size_t result) {
  return fmt::format("{}, {}, {}, {}", to_text(id.phase), id.module, id.op, result);
}

}  // namespace

void OldValues::begin(const OpEvent& event) {
  if (event.plan.written < 0) return;
  auto& before = written_[event.id.text()];
  before.clear();
  for (const auto& written : readable_results(event, {}))
    before.push_back(digests_of(all_shards(local_shards(written.tensor))));
}

void OldValues::look(const OpEvent& event, size_t result, HeldShards& held) {
  if (event.plan.written < 0) return exchange(key_of(event.id, result), held);
  const auto found = written_.find(event.id.text());
  if (found != written_.end() && result < found->second.size()) held.old_values = found->second[result];
}

void OldValues::look(const MoveEvent& event, HeldShards& held) {
  held.source = &event.before;
  exchange(fmt::format("{} -> {}", key_of(event.id, 0), event.after.text()), held);
}

void OldValues::exchange(const std::string& key, HeldShards& held) {
  held.old_values = std::exchange(last_[key], digests_of(held));
}

}  // namespace lockstep
