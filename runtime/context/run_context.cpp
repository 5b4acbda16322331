#include "runtime/context/run_context.h"

#include <ATen/SequenceNumber.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/context/named_draws.h"

namespace lockstep {
namespace {

/// At least one for a scope that makes nodes, between two steps. A step of training opens some hundred scopes for each
/// microbatch.
constexpr size_t kMostBreakpoints = size_t{1} << 18;

thread_local RunContext* in_use = nullptr;
thread_local bool draws_need_a_module = false;

}  // namespace

RunContext& RunContext::current() {
  if (in_use) [[likely]]
    return *in_use;
  thread_local RunContext of_thread;
  return of_thread;
}

RunContext::Use::Use(RunContext& context) : previous_(std::exchange(in_use, &context)) {}
RunContext::Use::~Use() { in_use = previous_; }

void RunContext::begin_microbatch(int64_t step, int64_t microbatch) {
  const bool same_step = open_.step == step;
  if (!same_step) occurrences_.clear();
  occurrences_[microbatch].clear();
  std::erase_if(breakpoints_, [&](const auto& point) { return !same_step || point.context.microbatch == microbatch; });
  if (!same_step) forgotten_ = 0;
  open_.step = step;
  open_.microbatch = microbatch;
  draws_.front() = 0;  // draws outside of every module
  remember_open();
}

/// Null outside of backward, and for nodes that belong to no op (a leaf's).
const OpContext* RunContext::of_running_node() const {
  const auto node = torch::autograd::get_current_node();
  if (!node || node->sequence_nr() == UINT64_MAX) return nullptr;
  if (node->sequence_nr() < forgotten_)
    fail<BadInput>(
        "the backward of an op came {} scopes or more after its forward, and what was open then is "
        "forgotten: call begin_microbatch() at the start of each step",
        kMostBreakpoints / 2);
  const auto after = std::upper_bound(breakpoints_.begin(), breakpoints_.end(), node->sequence_nr(),
                                      [](uint64_t value, const Breakpoint& point) { return value < point.sequence; });
  return after == breakpoints_.begin() ? nullptr : &std::prev(after)->context;
}

/// What is recomputed for a node's backward is of the node's microbatch, in the modules that are open.
OpContext RunContext::context_of_new_nodes() const {
  return {microbatch(), open_.module, rows(), valid(open_.seed, &OpContext::seed)};
}

void RunContext::remember(uint64_t from, OpContext context) {
  if (!breakpoints_.empty() && breakpoints_.back().sequence == from) breakpoints_.pop_back();
  if (breakpoints_.size() == kMostBreakpoints) {
    breakpoints_.erase(breakpoints_.begin(), breakpoints_.begin() + kMostBreakpoints / 2);
    forgotten_ = breakpoints_.front().sequence;
  }
  breakpoints_.push_back({from, std::move(context)});
}

void RunContext::remember_open() { remember(at::sequence_number::peek(), context_of_new_nodes()); }

/// Gives the node that was made for the op about to run to `module`: the newest, if it is newer than the last op. (An
/// op's node is made before the op runs; without gradients none is.)
void RunContext::claim_node(std::string_view module) {
  const uint64_t now = at::sequence_number::peek();
  if (now <= seen_ || (!breakpoints_.empty() && breakpoints_.back().sequence >= now)) return;
  auto context = context_of_new_nodes();
  context.module = module;
  remember(now - 1, std::move(context));
  remember(now, context_of_new_nodes());
}

int64_t RunContext::microbatch() const {
  const auto* node = of_running_node();
  return node ? node->microbatch : open_.microbatch;
}

Phase RunContext::phase() const {
  const bool unsaid = open_.phase == Phase::kInit || open_.phase == Phase::kForward;
  return unsaid && torch::autograd::get_current_node() ? Phase::kBackward : open_.phase;
}

/// Also of what a node's backward adds up in a phase of its own: nodes come in another order on other meshes.
std::string RunContext::module() const {
  const bool is_of_node = phase() == Phase::kBackward || (phase() == Phase::kReduce && open_.module.empty());
  const auto* node = is_of_node ? of_running_node() : nullptr;
  return node ? node->module : open_.module;
}

/// `said` holds outside of backward, and where it was said in the backward of the node that runs.
template <class T>
const T& RunContext::valid(const Said<T>& said, T OpContext::*kept) const {
  const auto* node = of_running_node();
  return node && said.node != torch::autograd::get_current_node().get() ? node->*kept : said.value;
}

const BatchRows& RunContext::rows() const { return valid(open_.rows, &OpContext::rows); }

uint64_t RunContext::seed() const {
  const auto& seed = valid(open_.seed, &OpContext::seed);
  if (!seed) fail<BadInput>("a random op ran on the mesh outside of a RandomScope, which holds the seed");
  return *seed;
}

const Mesh& RunContext::mesh() const {
  if (!open_.mesh)
    fail<BadInput>("a tensor was made on the mesh device outside of a MeshScope, which says on what mesh; open one");
  return *open_.mesh;
}

NamedDraws::NamedDraws() : previous_(std::exchange(draws_need_a_module, true)) {}
NamedDraws::~NamedDraws() { draws_need_a_module = previous_; }

uint64_t RunContext::next_random_stream() {
  if (draws_need_a_module && open_.module.empty())
    fail<BadInput>(
        "a draw outside of every module, in a stage of a pipeline: which draw of its microbatch it is cannot be known "
        "there. Open the module's scope before (Module::scope()).");
  if (!repeats_) last_stream_ = streams_.open({static_cast<uint64_t>(open_.step), open_.module, draws_.back()++});
  return last_stream_;
}

OpId RunContext::next_op_id(std::string_view op, std::string_view reads) {
  OpId id{step(), microbatch(), phase(), module(), std::string(op), 0};
  if (id.module.empty() && !reads.empty()) {
    id.module = reads;
    if (id.phase != Phase::kBackward) claim_node(reads);
  }
  seen_ = at::sequence_number::peek();
  auto& counts = occurrences_[id.microbatch];
  id.occurrence = counts[fmt::format("{}|{}|{}", static_cast<int>(id.phase), id.module, id.op)]++;
  last_op_ = id;
  uncounted_.clear();
  return id;
}

OpId RunContext::op_running() const {
  if (uncounted_.empty()) return last_op_;
  return {step(), microbatch(), phase(), module(), uncounted_, -1};
}

}  // namespace lockstep
