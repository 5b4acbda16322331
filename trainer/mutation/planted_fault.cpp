#include "trainer/mutation/planted_fault.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "consistency/traced_op.h"
#include "core/error.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/sharded_tensor.h"
#include "trainer/mutation/other_numbers.h"
#include "trainer/mutation/wrong_batch.h"

namespace lockstep::trainer {
namespace {

using Kind = Site::Kind;

/// Copies of what ranks have, each in the place of the rank that is to get it.
std::vector<at::Tensor> of_others(const Shards& shards, const std::function<size_t(size_t)>& other) {
  std::vector<at::Tensor> all;
  for (size_t i = 0; i < shards.size(); ++i) all.push_back(shards[other(i)].clone());
  return all;
}

}  // namespace

int rank_of_other_group(const Mesh& mesh, int rank, int axis) {
  for (int other = 0; other < mesh.axis_count(); ++other)
    if (other != axis && mesh.axis_size(other) > 1)
      return mesh.member(rank, other, (mesh.coordinate(rank, other) + 1) % mesh.axis_size(other));
  return rank;
}

PlantedFault::PlantedFault(const Mutant& mutant) : mutant_(mutant), key_(site_key(mutant.site.id)) {}

void PlantedFault::add_to(TrainingRun::Options& options, const Job& job) {
  if (mutant_.site.kind == Kind::kNumber)
    options.make_optimizer = [this, job] {
      return with_other_number(
          make_optimizer(job), mutant_, [this](int64_t) { return is_active(); }, changes_);
    };
  if (mutant_.site.kind == Kind::kDraw || mutant_.site.kind == Kind::kArgument)
    options.rules = with_other_calls(
        *built_in_rules(job.numerics.is_canonical() ? Numerics::kCanonical : Numerics::kNative), mutant_, *this);
}

bool PlantedFault::is_hit(int rank) const {
  return mutant_.ranks.empty() || std::find(mutant_.ranks.begin(), mutant_.ranks.end(), rank) != mutant_.ranks.end();
}

bool PlantedFault::is_here(const OpId& id) const {
  const auto& wanted = mutant_.site.id;
  return id.op == wanted.op && id.module == wanted.module && site_key(id) == key_;
}

bool PlantedFault::is_active() const {
  return (mutant_.step == 0 || mutant_.step == step_) && (times_ == 1 || !mutant_.is_transient);
}

bool PlantedFault::is_due(const OpId& id, int rank) { return is_active() && is_here(id) && is_hit(rank); }

/// What is right now is remembered also where the fault is not at work.
void PlantedFault::touch(const at::Tensor& value, const at::Tensor& other, const std::string& key) {
  if (is_active()) {
    changes_ += spoil(mutant_.change, mutant_.amount, value, other, key, memory_);
  } else if (mutant_.change == Change::kOld) {
    memory_[key] = value.detach().clone();
  }
}

void PlantedFault::spoil_shards(const Mesh& mesh, const Shards& shards, const std::vector<at::Tensor>& others) {
  const PlainTensors guard;
  const auto before = others.empty() && mutant_.change == Change::kOtherRank
                          ? of_others(shards, [&](size_t i) { return (i + shards.size() - 1) % shards.size(); })
                          : others;
  for (size_t i = 0; i < shards.size(); ++i) {
    const int rank = mesh.local_ranks()[i];
    if (is_hit(rank)) touch(shards[i], before.empty() ? at::Tensor() : before[i], std::to_string(rank));
  }
}

/// With bytes of its own: what it was made from stays as it is.
at::Tensor PlantedFault::spoiled_copy(const at::Tensor& tensor) {
  Shards shards;
  {
    const PlainTensors guard;
    for (const auto& shard : sharded(tensor).shards()->local_tensors()) shards.push_back(shard.clone());
  }
  spoil_shards(layout_of(tensor).mesh(), shards);
  return make_sharded(&spec_of(tensor), std::move(shards));
}

void PlantedFault::before_op(const OpEvent& event) {
  if (mutant_.site.kind != Kind::kOperand || !is_here(event.id)) return;
  for (const auto& operand : operands_of(event.arguments))
    if (operand.argument == mutant_.site.ordinal && operand.element == mutant_.site.element)
      spoil_shards(layout_of(operand.tensor).mesh(), sharded(operand.tensor).shards()->local_tensors());
}

/// A view gets bytes of its own: what it is a view of was right.
void PlantedFault::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (mutant_.site.kind != Kind::kOp || !is_here(event.id)) return;
  const auto all = op_results(event, results);
  const auto& [tensor, is_view] = all.at(static_cast<size_t>(mutant_.site.ordinal));
  auto& self = sharded(tensor);
  if (!is_view || self.is_detached_view())
    return spoil_shards(layout_of(tensor).mesh(), self.shards()->local_tensors());
  const auto other = spoiled_copy(tensor);
  if (is_active()) self.become(&spec_of(tensor), sharded(other).shards());
}

void PlantedFault::after_move(const MoveEvent& event) {
  if (mutant_.site.kind != Kind::kMove || !is_here(event.id)) return;
  if (moves_++ != mutant_.site.ordinal) return;
  const auto& mesh = event.after.layout.mesh();
  std::vector<at::Tensor> others;
  const PlainTensors guard;
  if (mutant_.change == Change::kBefore) others = of_others(event.shards_before, [](size_t i) { return i; });
  if (mutant_.change == Change::kOtherGroup)
    others = of_others(event.shards_after, [&](size_t i) {
      return static_cast<size_t>(mesh.local_index(rank_of_other_group(mesh, mesh.local_ranks()[i], event.axis)));
    });
  spoil_shards(mesh, event.shards_after, others);
}

void PlantedFault::before_collective(const CollectiveEvent& event) {
  is_in_collective_ = false;
  if (mutant_.site.kind != Kind::kPieces || event.mesh.axis_size(event.axis) < 2 || !is_here(event.id)) return;
  is_in_collective_ = pieces_++ == mutant_.site.ordinal;
  last_payload_ = at::Tensor();
  payloads_.clear();
}

/// As far as it has come already.
at::Tensor PlantedFault::payload_of_other_group(const Mesh& mesh, int rank) const {
  const auto mine = payloads_.find(rank);
  const auto theirs = payloads_.find(rank_of_other_group(mesh, rank, mesh.find_axis(mutant_.site.axis)));
  const size_t number = mine == payloads_.end() ? 0 : mine->second.size();
  return theirs == payloads_.end() || theirs->second.size() <= number ? at::Tensor() : theirs->second[number];
}

/// Pieces get memory of their own before they are changed: the sender's must stay as it is.
void PlantedFault::received(const CollectiveEvent& event, int rank, int source, at::Tensor& payload) {
  if (!is_in_collective_) return;
  const PlainTensors guard;
  const auto right = payload;
  if (is_hit(rank)) {
    payload = payload.clone();
    const bool by_group = mutant_.change == Change::kOtherGroup;
    touch(payload, by_group ? payload_of_other_group(event.mesh, rank) : last_payload_,
          fmt::format("{}<{}", rank, source));
  }
  last_payload_ = right;
  payloads_[rank].push_back(right);
}

void PlantedFault::take_gradient(int64_t microbatch, const std::string& parameter, at::Tensor& gradient) {
  if (mutant_.site.kind != Kind::kGradient || parameter != mutant_.site.tensor) return;
  if (microbatch == mutant_.site.id.microbatch) {
    const auto other = spoiled_copy(gradient);
    if (is_active()) gradient = other;
  } else if (mutant_.change == Change::kOld) {
    const auto& shards = sharded(gradient).shards()->local_tensors();
    const PlainTensors guard;
    for (size_t i = 0; i < shards.size(); ++i)
      memory_[std::to_string(layout_of(gradient).mesh().local_ranks()[i])] = shards[i].clone();
  }
}

void PlantedFault::begin_step(int64_t step, const TokenBatch&, double, const TrainingState&) {
  moves_ = pieces_ = 0;
  const bool is_again = step == std::exchange(step_, step);
  times_ = is_again ? times_ + 1 : 1;
  if (is_again)
    memory_ = memory_at_start_;
  else
    memory_at_start_ = memory_;
}

void PlantedFault::before_step(TrainingState& state, int64_t step) {
  step_ = 0, times_ = 0;
  if (mutant_.site.kind != Kind::kState || step != mutant_.step) return;
  step_ = step;
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors())
      if (prefix + entry.name == mutant_.site.tensor)
        spoil_shards(layout_of(tensor).mesh(), sharded(tensor).shards()->whole());
  step_ = 0;
}

TokenBatch PlantedFault::batch(int64_t step, TokenBatch right) {
  if (mutant_.site.kind != Kind::kBatch) return right;
  const bool is_now = mutant_.step == 0 || mutant_.step == step;
  return wrong_batch(mutant_, is_now, std::move(right), memory_, changes_);
}

double PlantedFault::rate(int64_t step, double right) {
  if (mutant_.site.kind != Kind::kRate) return right;
  const double other = other_number(mutant_, step, right, rates_);
  if (mutant_.step != 0 && mutant_.step != step) return right;
  changes_ += other < right || other > right;
  return other;
}

}  // namespace lockstep::trainer
