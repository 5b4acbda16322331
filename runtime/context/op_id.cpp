#include "runtime/context/op_id.h"

#include <ATen/SequenceNumber.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/op_text.h"
#include "rng/stream.h"

namespace lockstep {
namespace {

/// From this autograd sequence number on, new nodes belong to `module`.
struct Breakpoint {
  uint64_t sequence;
  std::string module;
};

struct Place {
  int64_t step = 0, microbatch = 0;
  Phase phase = Phase::kInit;
  std::string module;
  std::vector<Breakpoint> breakpoints;
  std::unordered_map<std::string, int64_t> occurrences;
  std::vector<uint64_t> draws{0};  // per open module scope
  rng::StreamRegistry streams;
  uint64_t seen = 0;  ///< the autograd sequence number at the last op
  OpId current;
  std::string uncounted;  ///< the op that runs, if it came after `current`
};

thread_local Place place;

void mark_breakpoint() {
  const uint64_t now = at::sequence_number::peek();
  auto& points = place.breakpoints;
  if (!points.empty() && points.back().sequence == now) points.pop_back();
  points.push_back({now, place.module});
}

const std::string& module_of_node(uint64_t sequence) {
  static const std::string top;
  const auto& points = place.breakpoints;
  const auto after = std::upper_bound(points.begin(), points.end(), sequence,
                                      [](uint64_t value, const Breakpoint& point) { return value < point.sequence; });
  return after == points.begin() ? top : std::prev(after)->module;
}

/// Gives the node that was made for the op about to run to `module`: the newest, if it is newer than the last op. (An
/// op's node is made before the op runs; without gradients none is.)
void claim_node(std::string_view module) {
  const uint64_t now = at::sequence_number::peek();
  auto& points = place.breakpoints;
  if (now <= place.seen || (!points.empty() && points.back().sequence >= now)) return;
  if (!points.empty() && points.back().sequence == now - 1) points.pop_back();
  points.push_back({now - 1, std::string(module)});
  points.push_back({now, place.module});
}

}  // namespace

std::string OpId::text() const {
  return fmt::format("step {}, {}", step, op_text(microbatch, phase, module, op, occurrence));
}

PhaseScope::PhaseScope(Phase phase) : previous_(std::exchange(place.phase, phase)) {}
PhaseScope::~PhaseScope() { place.phase = previous_; }

ModuleScope::ModuleScope(std::string_view name) : previous_length_(place.module.size()) {
  if (!place.module.empty() && !name.empty()) place.module += '.';
  place.module += name;
  place.draws.push_back(0);
  mark_breakpoint();
}

ModuleScope::~ModuleScope() {
  place.module.resize(previous_length_);
  place.draws.pop_back();
  mark_breakpoint();
}

void begin_microbatch(int64_t step, int64_t microbatch) {
  place.step = step;
  place.microbatch = microbatch;
  place.breakpoints.clear();
  place.occurrences.clear();
  place.draws.front() = 0;  // draws outside of every module
}

uint64_t next_random_stream() {
  return place.streams.open({static_cast<uint64_t>(place.step), place.module, place.draws.back()++});
}

Phase current_phase() {
  const bool is_open = place.phase == Phase::kInit || place.phase == Phase::kForward;
  return is_open && torch::autograd::get_current_node() ? Phase::kBackward : place.phase;
}
int64_t current_step() { return place.step; }
int64_t current_microbatch() { return place.microbatch; }

std::string current_module() {
  if (current_phase() != Phase::kBackward) return place.module;
  const auto node = torch::autograd::get_current_node();
  return node ? module_of_node(node->sequence_nr()) : place.module;
}

OpId next_op_id(std::string_view op, std::string_view reads) {
  OpId id{place.step, place.microbatch, current_phase(), current_module(), std::string(op), 0};
  if (id.module.empty() && !reads.empty()) {
    id.module = reads;
    if (id.phase != Phase::kBackward) claim_node(reads);
  }
  place.seen = at::sequence_number::peek();
  id.occurrence = place.occurrences[fmt::format("{}|{}|{}", static_cast<int>(id.phase), id.module, id.op)]++;
  place.current = id;
  place.uncounted.clear();
  return id;
}

const OpId& current_op_id() { return place.current; }

void set_uncounted_op(std::string_view op) { place.uncounted.assign(op); }

OpId op_running() {
  if (place.uncounted.empty()) return place.current;
  return {place.step, place.microbatch, current_phase(), current_module(), place.uncounted, -1};
}

}  // namespace lockstep
