#include "trainer/mutation/planted_fault.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "runtime/dispatch/op_results.h"
#include "runtime/planning/rules/built_in_rules.h"
#include "runtime/tensor/plain_tensors.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep::trainer {
namespace {

/// The draw that a rule's kernel makes on a rank, with another stream. One fault at a time, on one thread.
struct OtherDraws {
  static inline thread_local const Mutant* mutant = nullptr;
  static inline thread_local int64_t* changes = nullptr;
  static inline thread_local LocalFunction right = nullptr;

  static bool is_due(const LocalCall& call) {
    const auto rank = call.plan.results.at(0)->layout.mesh().local_ranks()[call.index];
    const auto& id = call.context.last_op_id();
    const auto& ranks = mutant->ranks;
    return site_key(id) == site_key(mutant->site.id) &&
           (ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end());
  }

  static void draw(const LocalCall& call, torch::jit::Stack& stack) {
    if (!is_due(call)) return right(call, stack);
    ++*changes;
    const bool by_rank = mutant->change == Change::kOtherRank;
    right({call.op, call.plan, call.index, call.context,
           call.stream + (by_rank ? call.index : static_cast<uint64_t>(mutant->amount))},
          stack);
  }
};

/// An optimizer whose numbers are not those that it was given.
class OtherNumbers final : public Optimizer {
 public:
  OtherNumbers(std::unique_ptr<Optimizer> right, const Mutant& mutant, int64_t& changes)
      : right_(std::move(right)), mutant_(mutant), changes_(changes) {}

  std::vector<SlotKind> slots() const override { return right_->slots(); }
  std::vector<StepScalar> scalars(int64_t step, double rate, double scale) const override {
    auto numbers = right_->scalars(step, rate, scale);
    for (auto& [name, value] : numbers)
      if (name == mutant_.site.tensor) value = changed(step, value);
    return numbers;
  }
  void update(const ParameterState& parameter, const at::Tensor& gradient,
              std::span<const StepScalar> scalars) const override {
    right_->update(parameter, gradient, scalars);
  }

 private:
  double changed(int64_t step, double value) const {
    given_[step] = value;
    double other = value * mutant_.amount;
    if (mutant_.change == Change::kPlus) other = value + mutant_.amount;
    if (mutant_.change == Change::kOld) other = given_[step - 1];
    if (mutant_.change == Change::kZero) other = 0;
    changes_ += std::memcmp(&other, &value, sizeof value) != 0;
    return other;
  }

  std::unique_ptr<Optimizer> right_;
  Mutant mutant_;
  int64_t& changes_;
  mutable std::map<int64_t, double> given_;  ///< by step
};

}  // namespace

PlantedFault::PlantedFault(const Mutant& mutant) : mutant_(mutant), key_(site_key(mutant.site.id)) {}

void PlantedFault::add_to(TrainingRun::Options& options, const Job& job) {
  if (mutant_.site.kind == Site::Kind::kNumber)
    options.make_optimizer = [this, job] {
      return std::make_unique<OtherNumbers>(make_optimizer(job), mutant_, changes_);
    };
  if (mutant_.site.kind != Site::Kind::kDraw) return;
  const auto shipped = built_in_rules(job.numerics.is_canonical() ? Numerics::kCanonical : Numerics::kNative);
  auto rule = *shipped->find(mutant_.site.id.op);
  LOCKSTEP_CHECK(rule.local, "{} draws nothing by itself", mutant_.site.id.op);
  OtherDraws::mutant = &mutant_, OtherDraws::changes = &changes_, OtherDraws::right = rule.local;
  rule.local = OtherDraws::draw;
  options.rules = shipped->with(rule);
}

bool PlantedFault::is_hit(int rank) const {
  return mutant_.ranks.empty() || std::find(mutant_.ranks.begin(), mutant_.ranks.end(), rank) != mutant_.ranks.end();
}

bool PlantedFault::is_here(const OpId& id) const {
  const auto& wanted = mutant_.site.id;
  return id.op == wanted.op && id.module == wanted.module && site_key(id) == key_;
}

void PlantedFault::spoil_shards(const Shards& shards, const std::vector<int>& ranks) {
  const PlainTensors guard;
  Shards before;
  for (const auto& shard : shards) before.push_back(mutant_.change == Change::kOtherRank ? shard.clone() : shard);
  for (size_t i = 0; i < shards.size(); ++i) {
    if (!is_hit(ranks[i])) continue;
    const auto& other = before[(i + shards.size() - 1) % shards.size()];
    changes_ += spoil(mutant_.change, mutant_.amount, shards[i], other, std::to_string(ranks[i]), memory_);
  }
}

void PlantedFault::after_op(const OpEvent& event, std::span<const c10::IValue> results) {
  if (mutant_.site.kind != Site::Kind::kOp || !is_here(event.id)) return;
  const auto all = op_results(event, results);
  const auto& tensor = all.at(static_cast<size_t>(mutant_.site.ordinal)).tensor;
  spoil_shards(sharded(tensor).shards()->local_tensors(), layout_of(tensor).mesh().local_ranks());
}

void PlantedFault::after_move(const MoveEvent& event) {
  if (mutant_.site.kind != Site::Kind::kMove || !is_here(event.id)) return;
  if (moves_++ == mutant_.site.ordinal) spoil_shards(event.shards_after, event.after.layout.mesh().local_ranks());
}

void PlantedFault::before_collective(const CollectiveEvent& event) {
  is_in_collective_ = false;
  if (mutant_.site.kind != Site::Kind::kPieces || event.mesh.axis_size(event.axis) < 2 || !is_here(event.id)) return;
  is_in_collective_ = pieces_++ == mutant_.site.ordinal;
  last_payload_ = at::Tensor();
}

/// Pieces get memory of their own before they are changed: the sender's must stay as it is.
void PlantedFault::received(const CollectiveEvent&, int rank, int source, at::Tensor& payload) {
  if (!is_in_collective_) return;
  const PlainTensors guard;
  const auto right = payload;
  if (is_hit(rank)) {
    payload = payload.clone();
    const auto key = fmt::format("{}<{}", rank, source);
    changes_ += spoil(mutant_.change, mutant_.amount, payload, last_payload_, key, memory_);
  }
  last_payload_ = right;
}

void PlantedFault::begin_step(int64_t step, const TokenBatch&, double, const TrainingState&) {
  moves_ = pieces_ = 0;
  if (step == std::exchange(step_, step))
    memory_ = memory_at_start_;
  else
    memory_at_start_ = memory_;
}

void PlantedFault::before_step(TrainingRun& run, int64_t step) {
  if (mutant_.site.kind == Site::Kind::kState && step == 2) spoil_state(run.state());
}

void PlantedFault::spoil_state(TrainingState& state) {
  for (const auto& entry : state)
    for (const auto& [prefix, tensor] : entry.tensors())
      if (prefix + entry.name == mutant_.site.tensor)
        spoil_shards(sharded(tensor).shards()->whole(), layout_of(tensor).mesh().local_ranks());
}

}  // namespace lockstep::trainer
