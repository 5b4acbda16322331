// Carrying out the moves of redistributions, one tensor's or a bucket's at a time.
#include "runtime/redistribute.h"

#include <ATen/Functions.h>

#include <tuple>

#include "core/error.h"
#include "runtime/mover.h"
#include "runtime/observer.h"
#include "runtime/op_id.h"
#include "runtime/sent_bytes.h"
#include "runtime/sharded_tensor.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

void convert(Shards& shards, c10::ScalarType dtype) {
  for (auto& shard : shards) shard = shard.to(dtype);
}

/// A tensor on its way: the moves that are left and the shards so far.
struct Journey {
  std::vector<Move> moves;
  Shards shards;
  size_t next = 0;

  bool done() const { return next == moves.size(); }
  const Move& move() const { return moves[next]; }
  Domain domain() const { return move().before->layout.mesh().world().domain(); }

  Mover depart() {
    if (!move().before->any_partial && move().after->any_partial)
      convert(shards, accumulation(domain(), move().before->dtype));
    return Mover(move(), std::move(shards));
  }
  void arrive(Shards result) {
    shards = std::move(result);
    if (move().before->any_partial && !move().after->any_partial)
      convert(shards, stored(domain(), move().before->dtype));
    ++next;
  }
};

/// What must agree for two movers to share an exchange.
std::tuple<int, CollectiveKind, c10::ScalarType> bundle_key(const Mover& mover) {
  return {mover.axis(), mover.kind(), mover.dtype()};
}

void count_traffic(const std::vector<Journey*>& bundle, const Mover& first) {
  double bytes = 0;
  for (const auto* journey : bundle) bytes += wire_bytes({journey->move()});
  const auto& mesh = first.mesh();
  mesh.world().traffic().add(mesh.axes()[static_cast<size_t>(first.axis())].name, first.kind(), bytes);
  if (!mesh.world().meta()) return;
  for (const auto* journey : bundle) mesh.world().moves().add(journey->move());
}

/// Small sums over messages are quickest in one round.
void choose_rounds(std::vector<Mover>& movers) {
  const auto& mesh = movers[0].mesh();
  const auto others = static_cast<size_t>(mesh.axis_size(movers[0].axis())) - 1;
  size_t bytes = 0;
  for (const auto& mover : movers) bytes += mover.whole_bytes() * others;
  if (bytes > mesh.world().one_round_bytes() || mesh.world().meta()) return;
  for (auto& mover : movers) mover.send_whole();
}

/// One exchange (or two, for an all-reduce over messages) for all movers.
void run_bundle(const std::vector<Journey*>& journeys, std::vector<Mover>& movers) {
  const auto& first = movers[0];
  const auto& mesh = first.mesh();
  count_traffic(journeys, first);
  choose_rounds(movers);
  for (int round = 0; round < first.rounds(); ++round) {
    Exchange request{mesh, first.axis(), first.kind(), first.dtype(), {}, {}};
    for (auto& mover : movers) {
      request.sent.push_back(mover.pieces(round));
      if (mesh.world().transport()) request.places.push_back(mover.places(round));
    }
    request.received_sizes = [&](size_t tensor, size_t index, size_t member) {
      return movers[tensor].received_sizes(round, index, member);
    };
    const auto received = exchange(std::move(request));
    for (size_t t = 0; t < movers.size(); ++t) movers[t].absorb(round, received[t]);
  }
  for (size_t t = 0; t < movers.size(); ++t) journeys[t]->arrive(movers[t].take_result());
}

/// Where no rank of the mesh lives nothing is there to move, and nothing is sent.
bool nothing_here(const TensorSpec& spec) { return spec.layout.mesh().local_count() == 0; }

/// Takes the steps of a journey that need no other rank, up to the next that does.
void run_local_steps(Journey& journey) {
  while (!journey.done() && Mover(journey.move(), journey.shards).is_local())
    journey.arrive(journey.depart().run_locally());
}

/// Lets the first journey that is not done take one step, together with all others that wait for the same collective.
bool step(std::vector<Journey>& journeys) {
  for (auto& journey : journeys) run_local_steps(journey);
  std::vector<Journey*> bundle;
  std::vector<Mover> movers;
  for (auto& journey : journeys) {
    if (journey.done()) continue;
    const Mover probe(journey.move(), journey.shards);
    if (!movers.empty() && bundle_key(probe) != bundle_key(movers[0])) continue;
    bundle.push_back(&journey);
    movers.push_back(journey.depart());
  }
  if (!bundle.empty()) run_bundle(bundle, movers);
  return !bundle.empty();
}

}  // namespace

Shards move_shards(const TensorSpec& source, const Shards& shards, const TensorSpec& target,
                   std::string_view /*reason*/) {
  if (nothing_here(source)) return {};
  std::vector<Journey> journeys{{plan_moves(source, target), shards}};
  while (step(journeys)) {
  }
  return std::move(journeys[0].shards);
}

std::vector<at::Tensor> redistribute_bucket(const std::vector<at::Tensor>& tensors,
                                            const std::vector<Layout>& layouts) {
  const PlainTensors guard;
  LOCKSTEP_CHECK_EQ(tensors.size(), layouts.size());
  std::vector<Journey> journeys;
  std::vector<const TensorSpec*> targets;
  for (size_t t = 0; t < tensors.size(); ++t) {
    auto& self = sharded(tensors[t]);
    targets.push_back(with_layout(self.spec(), layouts[t]));
    journeys.push_back({plan_moves(self.spec(), *targets[t]), self.shards()->either()});
  }
  if (!journeys.empty() && !nothing_here(spec_of(tensors[0])))
    while (step(journeys)) {
    }
  std::vector<at::Tensor> results;
  for (size_t t = 0; t < tensors.size(); ++t)
    results.push_back(journeys[t].moves.empty() ? tensors[t] : make_sharded(targets[t], std::move(journeys[t].shards)));
  return results;
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
