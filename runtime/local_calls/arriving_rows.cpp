#include "runtime/local_calls/arriving_rows.h"

#include "core/error.h"
#include "runtime/redistribution/collective_rounds.h"

namespace lockstep {

struct ArrivingRows::State {
  Move move;
  std::shared_ptr<Collectives> collectives = std::make_shared<Collectives>();
  std::optional<PendingExchange> pending = {};

  const Mesh& mesh() const { return move.before->layout.mesh(); }
  Collective& collective() const { return *collectives->front(); }
};

ArrivingRows::ArrivingRows(const Move& move, const at::Tensor& shard) : state_(std::make_unique<State>(State{move})) {
  LOCKSTEP_CHECK_EQ(state_->mesh().local_count(), 1u);
  state_->collectives->push_back(make_collective(move, {shard}));
  LOCKSTEP_CHECK(state_->collective().kind() == CollectiveKind::kAllGather, "rows arrive of a gather");
  count_traffic(*state_->collectives);
  state_->pending.emplace(round_of(state_->collectives, 0));
}

ArrivingRows::~ArrivingRows() = default;

int ArrivingRows::dim() const { return state_->move.before->layout[state_->move.axis].dim; }

size_t ArrivingRows::members() const { return static_cast<size_t>(state_->mesh().axis_size(state_->move.axis)); }

size_t ArrivingRows::own() const {
  return static_cast<size_t>(state_->mesh().coordinate(state_->mesh().local_ranks()[0], state_->move.axis));
}

at::Tensor ArrivingRows::piece(size_t member) { return state_->pending->piece(member); }

Shards ArrivingRows::whole() {
  state_->collective().absorb(0, state_->pending->finish_and_send()[0]);
  state_->pending.reset();
  return state_->collective().take_result();
}

}  // namespace lockstep
