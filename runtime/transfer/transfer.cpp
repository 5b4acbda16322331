#include "runtime/transfer/transfer.h"

#include <ATen/Functions.h>

#include <map>
#include <optional>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/scopes.h"
#include "runtime/context/world.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/exchange/message_exchange.h"
#include "runtime/plain/lazy_copy.h"
#include "runtime/plain/plain_tensors.h"
#include "runtime/tensor/ranks.h"
#include "runtime/tensor/sharded_tensor.h"
#include "runtime/transport/transport.h"

namespace lockstep {
namespace {

[[noreturn]] void fail_parts(const Mesh& from, const Mesh& to) {
  fail<BadInput>(
      "a transfer from mesh {} to mesh {}: they should be submeshes of one mesh that differ in the coordinate of one "
      "axis",
      from.text(), to.text());
}

/// The end of the way that receives or sends.
const Mesh& end_of(const Mesh& from, const Mesh& to, bool receives) {
  if (&from.whole() != &to.whole() || from.is_transfer_end() || to.is_transfer_end()) fail_parts(from, to);
  TransferEnd end{-1, from.fixed(), 0, 0, receives};
  for (size_t axis = 0; axis < from.fixed().size(); ++axis) {
    if (from.fixed()[axis] == to.fixed()[axis]) continue;
    if (end.axis >= 0 || from.fixed()[axis] < 0 || to.fixed()[axis] < 0) fail_parts(from, to);
    end = {static_cast<int>(axis), from.fixed(), from.fixed()[axis], to.fixed()[axis], receives};
    end.fixed[axis] = -1;
  }
  if (end.axis < 0) fail_parts(from, to);
  return from.all().transfer_end(from.whole(), end);
}

/// What was sent and not received yet, where all ranks live here and there is no transport. A World::part().
struct SentHere {
  explicit SentHere(World&) {}
  std::map<std::pair<const Mesh*, uint64_t>, Shards> shards;  ///< by the end that receives, and tag
};

Exchange request_of(const Mesh& end, const TensorSpec& spec, uint64_t tag) {
  return {end, end.transfer_axis(), CollectiveKind::kTransfer, storage(spec), {tag, spec.digest}, {Pieces()}, {}};
}

/// What observers hear of one end.
struct Watched {
  Watched(const Exchange& request, uint64_t number) : request_(request) {
    const auto& id = RunContext::current().last_op_id();
    for (const int rank : request.mesh.local_ranks())
      groups_.push_back(group_digest(request.mesh.group(rank, request.axis)));
    event_.emplace(CollectiveEvent{id, request.mesh, request.axis, request.kind, request.dtype, number,
                                   purpose_digest(id.op, request.subject), groups_});
    observers().notify([&](Observer& o) { o.before_collective(*event_); });
  }

  void received(Shards& shards) {
    const auto& mesh = request_.mesh;
    for (size_t i = 0; i < shards.size(); ++i) {
      const int rank = mesh.local_ranks()[i];
      observers().notify(
          [&](Observer& o) { o.received(*event_, rank, mesh.member(rank, request_.axis, 0), shards[i]); });
    }
  }

 private:
  Observers& observers() const { return request_.mesh.world().observers(); }

  const Exchange& request_;
  std::vector<uint64_t> groups_;
  std::optional<CollectiveEvent> event_;
};

void count_traffic(const Mesh& end, const TensorSpec& spec, const Shards& shards) {
  double bytes = 0;
  for (const auto& shard : shards) bytes += static_cast<double>(shard.nbytes()) / static_cast<double>(shards.size());
  const auto& axis = end.axes()[static_cast<size_t>(end.transfer_axis())].name;
  end.world().traffic().add(axis, CollectiveKind::kTransfer, bytes);
  if (end.world().meta()) ++end.world().part<TransferCounts>().sent[{&spec, axis}];
}

/// To the second member of each group; the first is who sends.
Pieces pieces_of(const Shards& shards) {
  Pieces pieces;
  for (const auto& shard : shards) pieces.push_back({at::Tensor(), shard});
  return pieces;
}

/// Of which only the options are read.
Pieces empty_pieces(const TensorSpec& spec) {
  const auto none = at::empty({0}, at::dtype(storage(spec)).device(spec.layout.mesh().world().shard_device()));
  return Pieces(spec.layout.mesh().local_count(), std::vector<at::Tensor>(2, none));
}

/// `spec`, of a part, on an end of the way that has that part's ranks.
const TensorSpec& spec_on(const Mesh& end, const TensorSpec& spec) {
  auto placements = spec.layout.placements();
  placements.insert(placements.begin() + end.transfer_axis(), Placement::replicate());
  return *end.specs().intern(Layout(end, std::move(placements)), spec.sizes, spec.dtype);
}

/// To observers a transfer is a move, too, where both ends are known.
void tell_move(const Mesh& sender, const Shards& before, const Mesh& receiver, const TensorSpec& spec,
               const Shards& after) {
  const auto kind = CollectiveKind::kTransfer;
  const MoveEvent event{RunContext::current().last_op_id(),
                        receiver.transfer_axis(),
                        &kind,
                        spec_on(sender, spec),
                        before,
                        spec_on(receiver, spec),
                        after};
  receiver.world().observers().notify([&](Observer& observer) { observer.after_move(event); });
}

}  // namespace

const TensorSpec* spec_at(const TensorSpec& spec, const Mesh& mesh) {
  end_of(spec.layout.mesh(), mesh, false);
  if (spec.any_partial) fail<BadInput>("a transfer of {}, an unfinished sum; redistribute() it first", spec.text());
  return mesh.specs().intern(Layout(mesh, spec.layout.placements()), spec.sizes, spec.dtype);
}

void send(const at::Tensor& tensor, const Mesh& to, uint64_t tag) {
  const PlainTensors guard;
  auto& self = sharded(tensor);
  self.bring_up_to_date();
  const auto* spec = spec_at(self.spec(), to);
  const auto& from = self.spec().layout.mesh();
  const auto& end = end_of(from, to, false);
  if (end.local_count() == 0) return;
  auto& world = end.world();
  const CommunicationScope scope(world, to_text(CollectiveKind::kTransfer));
  Shards shards;
  for (const auto& shard : self.shards()->whole()) shards.push_back(shard.detach().contiguous());
  count_traffic(end, self.spec(), shards);
  auto request = request_of(end, *spec, tag);
  const uint64_t number = end.next_collective();
  std::optional<Watched> watched;
  if (!world.observers().empty()) watched.emplace(request, number);
  if (world.meta()) return;
  if (!world.transport()) {
    const bool is_new =
        world.part<SentHere>().shards.try_emplace({&end_of(from, to, true), tag}, std::move(shards)).second;
    LOCKSTEP_CHECK(is_new, "transfer {:x} {} is sent twice before it is received", tag, end.text());
    return;
  }
  request.sent[0] = pieces_of(shards);
  const auto machine = std::make_shared<MessageExchange>(std::move(request), number, /*may_borrow=*/false);
  world.part<ExchangesInFlight>().begin(machine, /*announced=*/false);
}

struct PendingTransfer::State {
  const TensorSpec* spec;
  const Mesh& end;
  const Mesh& sender;  ///< the other end
  uint64_t tag, number;
  std::shared_ptr<MessageExchange> machine = {};
  Shards sent = {};  ///< what it was, where all ranks live here and there is no transport

  World& world() const { return end.world(); }
  void begin();
  Shards taken();
  Shards without_values() const;
};

void PendingTransfer::State::begin() {
  auto request = request_of(end, *spec, tag);
  request.sent[0] = empty_pieces(*spec);
  request.received_sizes = [spec = spec](size_t, size_t index, size_t) { return spec->local_sizes[index]; };
  machine = std::make_shared<MessageExchange>(std::move(request), number, /*may_borrow=*/false);
  world().part<ExchangesInFlight>().begin(machine, /*announced=*/false);
}

PendingTransfer::PendingTransfer(const TensorSpec* spec, const Mesh& from, uint64_t tag) {
  const PlainTensors guard;
  const auto& end = end_of(from, spec->layout.mesh(), true);
  state_ = std::make_unique<State>(State{spec, end, end_of(from, spec->layout.mesh(), false), tag,
                                         end.local_count() == 0 ? 0 : end.next_collective()});
  const auto* transport = end.world().transport();
  if (end.local_count() == 0 || !transport || transport->delivers_what_is_awaited()) return;
  RunContext::current().set_uncounted_op(to_text(CollectiveKind::kTransfer));  // it counts where it ends
  state_->begin();
}

PendingTransfer::~PendingTransfer() = default;
PendingTransfer::PendingTransfer(PendingTransfer&&) noexcept = default;

Shards PendingTransfer::State::without_values() const {
  Shards shards;
  for (const auto& sizes : spec->local_sizes)
    shards.push_back(at::empty(sizes, at::dtype(storage(*spec)).device(c10::kMeta)));
  return shards;
}

Shards PendingTransfer::State::taken() {
  if (world().meta()) return without_values();
  Shards shards;
  if (world().transport()) {
    if (!machine) begin();
    world().part<ExchangesInFlight>().await(*machine);
    machine->end();
    const auto arrived = machine->take_all();
    for (const auto& pieces : arrived[0]) shards.push_back(pieces[0]);
    return shards;
  }
  auto found = world().part<SentHere>().shards.extract({&end, tag});
  LOCKSTEP_CHECK(!found.empty(), "transfer {:x} {} is received before it is sent", tag, end.text());
  sent = std::move(found.mapped());
  for (const auto& shard : sent) shards.push_back(lazy_copy(shard));
  return shards;
}

at::Tensor PendingTransfer::finish() {
  const PlainTensors guard;
  if (state_->end.local_count() == 0) return make_sharded(state_->spec, Shards());
  const CommunicationScope scope(state_->world(), to_text(CollectiveKind::kTransfer));
  const auto request = request_of(state_->end, *state_->spec, state_->tag);
  std::optional<Watched> watched;
  if (!state_->world().observers().empty()) watched.emplace(request, state_->number);
  auto shards = state_->taken();
  if (watched && !state_->world().meta()) {
    watched->received(shards);
    if (!state_->sent.empty()) tell_move(state_->sender, state_->sent, state_->end, *state_->spec, shards);
  }
  for (size_t i = 0; i < shards.size(); ++i)
    LOCKSTEP_CHECK(shards[i].sizes() == c10::IntArrayRef(state_->spec->local_sizes[i]), "{} arrives as {}",
                   state_->spec->text(), c10::str(shards[i].sizes()));
  return make_sharded(state_->spec, std::move(shards));
}

}  // namespace lockstep
