#include "runtime/redistribute.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/journeys.h"
#include "runtime/observer.h"
#include "runtime/op_id.h"
#include "runtime/sharded_tensor.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

/// Where no rank of the mesh lives nothing is there to move, and nothing is sent.
bool nothing_here(const TensorSpec& spec) { return spec.layout.mesh().local_count() == 0; }

}  // namespace

Shards move_shards(const TensorSpec& source, const Shards& shards, const TensorSpec& target,
                   std::string_view /*reason*/) {
  if (nothing_here(source)) return {};
  Journeys journeys;
  journeys.add(plan_moves(source, target), shards);
  journeys.run();
  return journeys.take(0);
}

struct PendingBucket::State {
  std::vector<at::Tensor> tensors;  ///< as they were, where nothing moves
  std::vector<const TensorSpec*> targets;
  std::vector<bool> moves;
  Journeys journeys;
  bool is_here = true;  ///< whether any rank of the mesh lives here
};

PendingBucket::PendingBucket(const std::vector<at::Tensor>& tensors, const std::vector<Layout>& layouts)
    : state_(std::make_unique<State>(State{tensors, {}, {}, {}})) {
  const PlainTensors guard;
  LOCKSTEP_CHECK_EQ(tensors.size(), layouts.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    auto& self = sharded(tensors[t]);
    state_->targets.push_back(with_layout(self.spec(), layouts[t]));
    auto moves = plan_moves(self.spec(), *state_->targets[t]);
    state_->moves.push_back(!moves.empty());
    state_->journeys.add(std::move(moves), self.shards()->either());
  }
  state_->is_here = !tensors.empty() && !nothing_here(spec_of(tensors[0]));
}

PendingBucket::~PendingBucket() = default;
PendingBucket::PendingBucket(PendingBucket&&) noexcept = default;

void PendingBucket::depart() {
  const PlainTensors guard;
  if (state_->is_here && state_->targets[0]->layout.mesh().world().overlaps()) state_->journeys.depart();
}

std::vector<at::Tensor> PendingBucket::finish() {
  const PlainTensors guard;
  auto& [tensors, targets, moves, journeys, is_here] = *state_;
  if (is_here) journeys.run();
  for (size_t t = 0; t < tensors.size(); ++t)
    if (moves[t]) tensors[t] = make_sharded(targets[t], journeys.take(t));
  return std::move(tensors);
}

std::vector<at::Tensor> redistribute_bucket(const std::vector<at::Tensor>& tensors,
                                            const std::vector<Layout>& layouts) {
  return PendingBucket(tensors, layouts).finish();
}

at::Tensor redistribute_values(const at::Tensor& tensor, const Layout& layout, std::string_view reason) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.check_fresh();
  const auto* target = with_layout(self.spec(), layout);
  if (target->layout == self.spec().layout) return tensor;
  auto& world = layout.mesh().world();
  if (!world.observers().empty())
    next_op_id(reason);
  else if (world.transport())
    set_uncounted_op(reason);
  return make_sharded(target, move_shards(self.spec(), self.shards()->either(), *target, reason));
}

at::Tensor redistribute_later(const at::Tensor& tensor, const Layout& layout) {
  const auto source = tensor.detach();  // above the guard, so that it shares the version counter
  const PlainTensors guard;
  const auto* target = with_layout(spec_of(source), layout);
  const auto version = source._version();
  auto move = [source, target, version] {
    const PlainTensors below;
    LOCKSTEP_CHECK_EQ(source._version(), version, "the source of a pending redistribution was written");
    auto& self = sharded(source);
    return move_shards(self.spec(), self.shards()->either(), *target, "redistribute_later");
  };
  return make_sharded(target, std::make_shared<ShardSet>(std::move(move), target->any_partial));
}

}  // namespace lockstep
