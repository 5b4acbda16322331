#include "runtime/local_calls/decomposition.h"

#include <algorithm>

#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/planning/rule.h"
#include "runtime/redistribution/collective.h"
#include "runtime/redistribution/local_move.h"
#include "runtime/tensor/sharded_tensor.h"

namespace lockstep {

bool Decomposition::is_on() const {
  return !axis_.empty() && world_.overlaps() && world_.shard_device().is_cpu() && world_.local_ranks().size() == 1;
}

at::Tensor Decomposition::redistributed(const at::Tensor& tensor, const Layout& layout) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.bring_up_to_date();
  const auto& spec = self.spec();
  const auto* target = with_layout(spec, layout);
  if (spec.is_packed() || target->is_packed() || spec.layout.mesh().local_count() == 0) return {};
  const auto moves = plan_moves(spec, *target);
  if (moves.size() != 1 || !is_along_axis(moves[0])) return {};
  return is_gather(moves[0])                       ? gathered(tensor, moves[0])
         : is_scatter_of(*self.shards(), moves[0]) ? scattered(tensor, moves[0])
                                                   : at::Tensor();
}

bool Decomposition::is_along_axis(const Move& move) const {
  return move.before->layout.mesh().axes()[static_cast<size_t>(move.axis)].name == axis_ && !is_local(move);
}

/// Of rows: along any dimension but the last.
bool Decomposition::is_gather(const Move& move) {
  const int last = static_cast<int>(move.before->sizes.size()) - 1;
  return kind_of(move) == CollectiveKind::kAllGather && move.before->layout[move.axis].dim < last &&
         !move.before->any_partial;
}

bool Decomposition::is_scatter_of(const ShardSet& set, const Move& move) const {
  return kind_of(move) == CollectiveKind::kReduceScatter && product_ && set_.lock().get() == &set && set.is_pending() &&
         product_->has_rows_along(move.after->layout[move.axis].dim);
}

std::shared_ptr<ShardSet> Decomposition::begin(std::function<Shards()> make, bool partial) {
  auto set = std::make_shared<ShardSet>(
      [this, make = std::move(make), number = ++begun_] {
        const PlainTensors guard;
        auto shards = make();
        if (number == begun_) forget();
        return shards;
      },
      partial);
  set_ = set;
  return set;
}

at::Tensor Decomposition::gathered(const at::Tensor& tensor, const Move& move) {
  settle();
  name_communication(world_, "redistribute");
  reads_ = {sharded(tensor).shards()->whole()[0]};
  arriving_ = std::make_shared<ArrivingRows>(move, reads_[0]);
  auto set = begin([rows = arriving_] { return rows->whole(); }, /*partial=*/false);
  last_gathered_ = set;
  return make_sharded(move.after, std::move(set));
}

at::Tensor Decomposition::scattered(const at::Tensor& tensor, const Move& move) {
  name_communication(world_, "redistribute");
  const auto product = product_;
  auto& set = *sharded(tensor).shards();
  forget();
  try {
    auto shards = product->scattered(move);
    ++counts_.scatters;
    set.evict([product] { return product->whole(); });
    return make_sharded(move.after, std::move(shards));
  } catch (...) {
    set.evict([failure = std::current_exception()]() -> Shards { std::rethrow_exception(failure); });
    throw;
  }
}

std::shared_ptr<ArrivingRows> Decomposition::arriving(const ShardSet& set) const {
  const auto under_way = set_.lock();
  return under_way.get() == &set && set.is_pending() ? arriving_ : nullptr;
}

bool Decomposition::was_gathered(const at::Tensor& tensor) const {
  const auto last = last_gathered_.lock();
  return last && is_sharded(tensor) && sharded(tensor).shards() == last;
}

std::shared_ptr<ShardSet> Decomposition::put_off(ProductRows rows, std::function<Shards()> whole,
                                                 std::vector<at::Tensor> factors) {
  settle();
  reads_ = std::move(factors);
  product_ = std::make_shared<ProductRows>(std::move(rows));
  return begin(std::move(whole), /*partial=*/true);
}

bool Decomposition::compares(const Plan& plan, bool scattered, int dim) {
  return compared_.emplace(plan.rule->op, plan.wanted[0], plan.wanted[1], plan.results[0], scattered, dim).second;
}

bool Decomposition::has_sums_of(const TensorSpec& result) const {
  const int axis = result.layout.mesh().find_axis(axis_);
  return axis >= 0 && result.layout[axis].is_partial();
}

void Decomposition::before_write(const Shards& shards) {
  const auto is_read = [&](const at::Tensor& shard) {  // lazy copies have one memory in two storages
    const auto* written = shard.storage().data();
    const auto has = [&](const auto& read) { return read.nbytes() > 0 && read.storage().data() == written; };
    return std::ranges::any_of(reads_, has);
  };
  if (std::ranges::any_of(shards, is_read)) settle();
}

void Decomposition::settle() {
  const auto set = set_.lock();
  if (set)
    set->local_tensors();
  else if (arriving_)
    std::exchange(arriving_, nullptr)->whole();  // what nobody will read is still sent
  forget();
}

}  // namespace lockstep
