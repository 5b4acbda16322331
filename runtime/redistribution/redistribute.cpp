#include "runtime/redistribution/redistribute.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/redistribution/move_rows.h"
#include "runtime/redistribution/redistribution_batch.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {
namespace {

/// Where no rank of the mesh lives nothing is there to move, and nothing is sent.
bool nothing_here(const TensorSpec& spec) { return spec.layout.mesh().local_count() == 0; }

bool lie_together(const at::Tensor& a, const at::Tensor& b) {
  return !a.is_meta() && a.nbytes() > 0 && a.storage().is_alias_of(b.storage());
}

}  // namespace

Shards move_shards(const TensorSpec& source, const Shards& shards, const TensorSpec& target,
                   std::string_view /*reason*/) {
  if (nothing_here(source)) return {};
  RedistributionBatch batch;
  batch.add(plan_moves(source, target), shards);
  batch.run();
  return batch.take(0);
}

std::shared_ptr<ShardSet> moved(const TensorSpec& source, ShardSet& set, const TensorSpec& target,
                                std::string_view reason) {
  if (!source.is_packed())
    return std::make_shared<ShardSet>(move_shards(source, set.local_tensors(), target, reason), target.any_partial);
  return moved_rows(source, set, target);
}

std::shared_ptr<ShardSet> with_own_bytes(const std::shared_ptr<ShardSet>& set, ShardSet& source) {
  const PlainTensors guard;
  if (set->is_pending() && set.get() != &source) return set;
  const auto& theirs = source.local_tensors();
  auto shards = set->local_tensors();
  for (size_t i = 0; i < shards.size(); ++i)
    if (lie_together(shards[i], theirs[i])) shards[i] = lazy_copy(shards[i]);
  auto own = std::make_shared<ShardSet>(std::move(shards), set->is_partial());
  own->set_present(set->shared_present());
  return own;
}

struct PendingBucket::State {
  std::vector<at::Tensor> tensors;  ///< as they were, where nothing moves
  std::vector<const TensorSpec*> targets;
  std::vector<bool> moves;
  RedistributionBatch batch;
  bool is_here = true;  ///< whether any rank of the mesh lives here
};

PendingBucket::PendingBucket(const std::vector<at::Tensor>& tensors, const std::vector<Layout>& layouts)
    : state_(std::make_unique<State>(State{tensors, {}, {}, {}})) {
  const PlainTensors guard;
  LOCKSTEP_CHECK_EQ(tensors.size(), layouts.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    auto& self = sharded(tensors[t]);
    LOCKSTEP_CHECK(!self.spec().is_packed(), "packed rows travel alone");
    state_->targets.push_back(with_layout(self.spec(), layouts[t]));
    auto moves = plan_moves(self.spec(), *state_->targets[t]);
    state_->moves.push_back(!moves.empty());
    state_->batch.add(std::move(moves), self.shards()->local_tensors());
  }
  state_->is_here = !tensors.empty() && !nothing_here(spec_of(tensors[0]));
}

PendingBucket::~PendingBucket() = default;
PendingBucket::PendingBucket(PendingBucket&&) noexcept = default;

void PendingBucket::start() {
  const PlainTensors guard;
  if (state_->is_here && state_->targets[0]->layout.mesh().world().overlaps()) state_->batch.start();
}

std::vector<at::Tensor> PendingBucket::finish() {
  const PlainTensors guard;
  auto& [tensors, targets, moves, batch, is_here] = *state_;
  if (is_here) batch.run();
  for (size_t t = 0; t < tensors.size(); ++t)
    if (moves[t]) tensors[t] = make_sharded(targets[t], batch.take(t));
  return std::move(tensors);
}

std::vector<at::Tensor> redistribute_bucket(const std::vector<at::Tensor>& tensors,
                                            const std::vector<Layout>& layouts) {
  return PendingBucket(tensors, layouts).finish();
}

at::Tensor redistribute_values(const at::Tensor& tensor, const Layout& layout, std::string_view reason) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.bring_up_to_date();
  const auto* target = with_layout(self.spec(), layout);
  if (target->layout == self.spec().layout) return tensor;
  auto& world = layout.mesh().world();
  name_communication(world, reason);
  return make_sharded(target, moved(self.spec(), *self.shards(), *target, reason));
}

at::Tensor redistribute_later(const at::Tensor& tensor, const Layout& layout) {
  const auto source = tensor.detach();  // above the guard, so that it shares the version counter
  const PlainTensors guard;
  const auto* target = with_layout(spec_of(source), layout);
  if (target->is_packed()) return redistribute_values(source, layout, "redistribute_later");
  const auto version = source._version();
  auto move = [source, target, version] {
    const PlainTensors below;
    LOCKSTEP_CHECK_EQ(source._version(), version, "the source of a pending redistribution was written");
    auto& self = sharded(source);
    return move_shards(self.spec(), self.shards()->local_tensors(), *target, "redistribute_later");
  };
  return make_sharded(target, std::make_shared<ShardSet>(std::move(move), target->any_partial));
}

}  // namespace lockstep
