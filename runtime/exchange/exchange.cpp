#include "runtime/exchange/exchange.h"

#include <ATen/Functions.h>

#include "core/error.h"
#include "runtime/context/observer.h"
#include "runtime/context/run_context.h"
#include "runtime/context/world.h"
#include "runtime/exchange/exchanges_in_flight.h"
#include "runtime/transport/transport.h"

namespace lockstep {
namespace {

/// All ranks are here: what member m sent to me is what I take.
std::vector<Pieces> exchange_directly(const Exchange& request) {
  const auto& mesh = request.mesh;
  auto received = empty_bundle(request);
  for (size_t i = 0; i < mesh.local_count(); ++i) {
    const int rank = mesh.local_ranks()[i];
    const auto my_member = static_cast<size_t>(mesh.coordinate(rank, request.axis));
    if (request.is_alike && my_member > 0) continue;
    const auto group = mesh.group(rank, request.axis);
    for (size_t t = 0; t < received.size(); ++t)
      for (size_t m = 0; m < group.size(); ++m)
        received[t][i][m] = request.sent[t][static_cast<size_t>(mesh.local_index(group[m]))][my_member];
  }
  return received;
}

/// Of each local rank's group, as its messages have it.
std::vector<uint64_t> group_digests(const Exchange& request) {
  std::vector<uint64_t> digests;
  for (const int rank : request.mesh.local_ranks())
    digests.push_back(group_digest(request.mesh.group(rank, request.axis)));
  return digests;
}

void notify_received(Observers& observers, const CollectiveEvent& event, std::vector<Pieces>& received) {
  for (auto& pieces : received)
    for (size_t i = 0; i < pieces.size(); ++i) {
      const int rank = event.mesh.local_ranks()[i];
      const auto group = event.mesh.group(rank, event.axis);
      for (size_t m = 0; m < group.size(); ++m)
        if (group[m] != rank) observers.notify([&](Observer& o) { o.received(event, rank, group[m], pieces[i][m]); });
    }
}

/// Observers may put other values into what arrived: they get tensors of their own.
void exchange_messages(Exchange request, const CollectiveEvent& event, const Use& use) {
  auto& world = request.mesh.world();
  auto& observers = world.observers();
  const auto machine = std::make_shared<MessageExchange>(std::move(request), event.number, observers.empty());
  world.part<ExchangesInFlight>().begin(machine, /*announced=*/true);
  world.part<ExchangesInFlight>().await(*machine);
  const auto leave = [&] {
    machine->settle();
    world.part<ExchangesInFlight>().await_sent(*machine);
    machine->end();
  };
  if (!machine->has_borrowed()) leave();
  {
    auto received = machine->take_all();
    if (!observers.empty()) notify_received(observers, event, received);
    use(received);
  }
  if (machine->has_borrowed()) leave();
}

}  // namespace

PendingExchange::PendingExchange(Exchange request) : in_flight_(request.mesh.world().part<ExchangesInFlight>()) {
  const uint64_t number = request.mesh.next_collective();
  machine_ = std::make_shared<MessageExchange>(std::move(request), number, /*may_borrow=*/false);
  in_flight_.begin(machine_, /*announced=*/false);
}

const Exchange& PendingExchange::request() const { return machine_->request(); }

const at::Tensor& PendingExchange::piece(size_t member) {
  in_flight_.await_piece(*machine_, member);
  return machine_->piece(member);
}

std::vector<Pieces> PendingExchange::finish() {
  in_flight_.await(*machine_);
  machine_->end();
  return machine_->take_all();
}

std::vector<Pieces> PendingExchange::finish_and_send() {
  in_flight_.await(*machine_);
  in_flight_.await_sent(*machine_);
  return finish();
}

void exchange(Exchange request, const Use& use) {
  auto& world = request.mesh.world();
  LOCKSTEP_CHECK(!request.make || world.transport(), "pieces are made for messages alone");
  const uint64_t number = request.mesh.next_collective();
  auto& observers = world.observers();
  const bool is_watched = !observers.empty();
  const auto& id = RunContext::current().last_op_id();
  const auto groups = is_watched ? group_digests(request) : std::vector<uint64_t>();
  const auto purpose = is_watched ? purpose_digest(id.op, request.subject) : 0;
  const CollectiveEvent event{id, request.mesh, request.axis, request.kind, request.dtype, number, purpose, groups};
  if (is_watched) observers.notify([&](Observer& o) { o.before_collective(event); });
  if (world.meta()) return;
  if (world.transport()) return exchange_messages(std::move(request), event, use);
  auto received = exchange_directly(request);
  if (is_watched) notify_received(observers, event, received);
  use(received);
}

}  // namespace lockstep
