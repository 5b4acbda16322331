#include "runtime/redistribution/collective_rounds.h"

#include <algorithm>

#include "core/error.h"
#include "runtime/context/world.h"
#include "runtime/redistribution/sent_bytes.h"

namespace lockstep {
namespace {

/// Of the whole tensor: what all ranks know alike.
size_t whole_bytes(const Collective& collective) {
  const auto elements = static_cast<size_t>(c10::multiply_integers(collective.move().before->sizes));
  return elements * c10::elementSize(collective.dtype());
}

/// Whether whole tensors take no more bytes between two ranks: an ordered sum has no more nodes before than after.
bool whole_is_as_cheap(const Move& move) { return move.before->nodes_per_rank <= move.after->nodes_per_rank; }

}  // namespace

void count_traffic(const Collectives& collectives) {
  const auto& mesh = collectives.front()->mesh();
  auto& world = mesh.world();
  double bytes = 0;
  for (const auto& collective : collectives)
    bytes += collective->sent_by_value().value_or(world.part<MeanSentBytes>().of(collective->move()));
  const auto& axis = mesh.axes()[static_cast<size_t>(collectives.front()->axis())].name;
  world.traffic().add(axis, collectives.front()->kind(), bytes);
  if (!world.meta()) return;
  for (const auto& collective : collectives) world.part<MoveCounts>().add(collective->move());
}

void choose_rounds(const Collectives& collectives) {
  const auto& first = *collectives[0];
  const auto& world = first.mesh().world();
  if (first.rounds() == 1 || world.meta()) return;
  const auto others = static_cast<size_t>(first.mesh().axis_size(first.axis())) - 1;
  size_t bytes = 0;
  for (const auto& collective : collectives) bytes += whole_bytes(*collective) * others;
  const auto is_as_cheap = [](const auto& collective) { return whole_is_as_cheap(collective->move()); };
  const bool is_small = bytes <= world.one_round_bytes();
  if (!is_small && !(others == 1 && std::all_of(collectives.begin(), collectives.end(), is_as_cheap))) return;
  for (const auto& collective : collectives) collective->send_whole();
}

Exchange announced(const Collectives& collectives, int round) {
  const auto& first = *collectives.front();
  Exchange request{first.mesh(), first.axis(), first.kind(), first.dtype(), {static_cast<uint64_t>(round)}, {}, {}};
  for (const auto& collective : collectives) {
    request.subject.push_back(collective->move().before->digest);
    request.subject.push_back(collective->move().after->digest);
  }
  return request;
}

Exchange round_of(const std::shared_ptr<Collectives>& collectives, int round) {
  auto request = announced(*collectives, round);
  request.is_alike = collectives->front()->is_alike(round);
  const auto agrees = [&](const auto& collective) { return collective->is_alike(round) == request.is_alike; };
  LOCKSTEP_CHECK(std::ranges::all_of(*collectives, agrees), "one exchange of pieces for all and pieces for each");
  for (const auto& collective : *collectives) {
    request.sent.push_back(collective->pieces(round));
    if (request.mesh.world().transport()) request.destinations.push_back(collective->destinations(round));
  }
  request.received_sizes = [collectives, round](size_t tensor, size_t index, size_t member) {
    return (*collectives)[tensor]->received_sizes(round, index, member);
  };
  return request;
}

}  // namespace lockstep
