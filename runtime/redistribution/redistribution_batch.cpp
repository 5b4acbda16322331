#include "runtime/redistribution/redistribution_batch.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/collective.h"
#include "runtime/redistribution/collective_rounds.h"
#include "runtime/redistribution/local_move.h"
#include "runtime/redistribution/move_rows.h"
#include "runtime/tensor/memory_order.h"

namespace lockstep {
namespace {

void convert(Shards& shards, c10::ScalarType dtype) {
  for (auto& shard : shards) shard = shard.to(dtype);
}

/// What must agree for two collectives to share an exchange: axis, kind and dtype.
using BundleKey = std::tuple<int, CollectiveKind, c10::ScalarType>;

Shards without_values(const TensorSpec& spec, c10::ScalarType dtype) {
  const PlainTensors guard;
  Shards shards;
  for (size_t i = 0; i < spec.local_sizes.size(); ++i)
    shards.push_back(at::empty(spec.expected_sizes(i), at::dtype(dtype).device(c10::kMeta)));
  return shards;
}

}  // namespace

/// A tensor on its way: the moves that are left and the shards so far.
struct RedistributionBatch::Entry {
  std::vector<Move> moves;
  Shards shards;
  size_t next = 0;
  Shards before = {};                                       ///< the move that goes on, where observers are
  std::vector<std::shared_ptr<const Shards>> present = {};  ///< of packed rows: before each move, and at the end

  bool done() const { return next == moves.size(); }
  const Move& move() const { return moves[next]; }

  /// REQUIRES: !is_local(move()).
  BundleKey key() const { return {move().axis, kind_of(move()), shards[0].scalar_type()}; }
  /// The shards as they begin the next move.
  Shards leave() {
    if (is_watched()) before = shards;
    if (!move().before->any_partial && move().after->any_partial) convert(shards, storage(*move().after));
    return std::move(shards);
  }
  void arrive(Shards result) {
    shards = std::move(result);
    if (move().before->any_partial) convert(shards, storage(*move().after));
    if (is_watched()) tell();
    ++next;
  }
  World& world() const { return move().before->layout.mesh().world(); }
  bool is_watched() const { return !world().observers().empty() && !world().meta(); }
  void tell() {
    const auto kind = is_local(move()) ? CollectiveKind::kAllReduce : kind_of(move());
    auto sent = std::exchange(before, {});
    if (!present.empty())
      sent = all_rows(*move().before, sent, *present[next]),
      shards = all_rows(*move().after, shards, *present[next + 1]);
    const MoveEvent event{RunContext::current().last_op_id(),
                          move().axis,
                          is_local(move()) ? nullptr : &kind,
                          *move().before,
                          sent,
                          *move().after,
                          shards};
    world().observers().notify([&](Observer& observer) { observer.after_move(event); });
    if (!present.empty()) shards = rows_of_all(*move().after, shards, *present[next + 1]);
  }
  /// The steps that need no other rank, up to the next that does.
  void run_local_steps() {
    while (!done() && is_local(move())) {
      const bool takes_rows = moves_cells(move()) && move().before->layout[move().axis].is_replicate();
      if (takes_rows && world().meta())
        arrive(without_values(*move().after, leave()[0].scalar_type()));
      else
        arrive(takes_rows ? rows_taken(move(), leave(), *present[next]) : run_locally(move(), leave()));
    }
  }
  std::unique_ptr<Collective> collective() {
    if (!moves_cells(move())) return make_collective(move(), leave());
    return make_row_exchange(move(), leave(), present[next], present[next + 1]);
  }
};

/// Entries whose next moves are of one kind and axis: one exchange (or two, for an all-reduce over messages).
struct RedistributionBatch::Bundle {
  std::vector<Entry*> batch;
  std::shared_ptr<Collectives> collectives = std::make_shared<Collectives>();
  std::optional<PendingExchange> pending = {};  ///< the first round, if it has begun

  const Collective& first() const { return *collectives->front(); }

  /// In a World without values nothing is cut, sent and combined: what arrives has the sizes of its layout.
  void run_without_values() {
    exchange(announced(*collectives, 0), {});
    for (auto* entry : batch) entry->arrive(without_values(*entry->move().after, first().dtype()));
  }

  void run() {
    if (first().mesh().world().meta()) return run_without_values();
    for (int round = 0; round < first().rounds(); ++round) {
      const auto absorb = [&](const std::vector<Pieces>& received) {
        for (size_t t = 0; t < collectives->size(); ++t) (*collectives)[t]->absorb(round, received[t]);
      };
      if (pending)
        absorb(std::exchange(pending, std::nullopt)->finish());
      else
        exchange(round_of(collectives, round), absorb);
    }
    for (size_t t = 0; t < collectives->size(); ++t) batch[t]->arrive((*collectives)[t]->take_result());
  }
};

RedistributionBatch::RedistributionBatch() = default;
RedistributionBatch::~RedistributionBatch() = default;
RedistributionBatch::RedistributionBatch(RedistributionBatch&&) noexcept = default;

void RedistributionBatch::add(std::vector<Move> moves, Shards shards) {
  entries_.push_back({std::move(moves), std::move(shards)});
}

void RedistributionBatch::add_rows(std::vector<Move> moves, Shards rows,
                                   std::vector<std::shared_ptr<const Shards>> present) {
  entries_.push_back({std::move(moves), std::move(rows), 0, {}, std::move(present)});
}

/// The first entry that is not done, and all others that wait for the same collective; false if all are done.
bool RedistributionBatch::collect() {
  auto bundle = std::make_unique<Bundle>();
  std::optional<BundleKey> key;
  for (auto& entry : entries_) entry.run_local_steps();
  for (auto& entry : entries_) {
    if (entry.done() || (key && entry.key() != *key)) continue;
    key = entry.key();
    bundle->batch.push_back(&entry);
    bundle->collectives->push_back(entry.collective());
  }
  if (!key) return false;
  count_traffic(*bundle->collectives);
  choose_rounds(*bundle->collectives);
  bundle_ = std::move(bundle);
  return true;
}

void RedistributionBatch::start() {
  if (collect()) bundle_->pending.emplace(round_of(bundle_->collectives, 0));
}

void RedistributionBatch::run() {
  while (bundle_ || collect()) {
    bundle_->run();
    bundle_.reset();
  }
}

Shards RedistributionBatch::take(size_t n) {
  auto& entry = entries_[n];
  if (entry.moves.empty()) return std::move(entry.shards);
  const auto& spec = *entry.moves.back().after;
  // What only one rank has, or is cut out of a whole, may be a view of another tensor's bytes.
  for (auto& shard : entry.shards)
    if (!is_in_memory_order(spec, shard)) shard = in_memory_order(spec, shard);
  return std::move(entry.shards);
}

}  // namespace lockstep
