#include "runtime/journeys.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "runtime/collective.h"
#include "runtime/mover.h"
#include "runtime/sent_bytes.h"
#include "runtime/world.h"

namespace lockstep {
namespace {

void convert(Shards& shards, c10::ScalarType dtype) {
  for (auto& shard : shards) shard = shard.to(dtype);
}

/// What must agree for two movers to share an exchange.
std::tuple<int, CollectiveKind, c10::ScalarType> bundle_key(const Mover& mover) {
  return {mover.axis(), mover.kind(), mover.dtype()};
}

/// Small sums over messages are quickest in one round, and so are sums of two ranks if that takes no more bytes.
void choose_rounds(std::vector<Mover>& movers) {
  const auto& mesh = movers[0].mesh();
  const auto others = static_cast<size_t>(mesh.axis_size(movers[0].axis())) - 1;
  if (mesh.world().meta()) return;
  size_t bytes = 0;
  for (const auto& mover : movers) bytes += mover.whole_bytes() * others;
  const bool is_small = bytes <= mesh.world().one_round_bytes();
  const auto is_as_cheap = [](const Mover& mover) { return mover.whole_is_as_cheap(); };
  if (!is_small && !(others == 1 && std::all_of(movers.begin(), movers.end(), is_as_cheap))) return;
  for (auto& mover : movers) mover.send_whole();
}

/// `movers` are kept for as long as the exchange may ask for sizes.
Exchange round_of(const std::shared_ptr<std::vector<Mover>>& movers, int round) {
  const auto& first = movers->front();
  Exchange request{first.mesh(), first.axis(), first.kind(), first.dtype(), {static_cast<uint64_t>(round)}, {}, {}};
  for (auto& mover : *movers) {
    request.subject.push_back(mover.move().before->digest);
    request.subject.push_back(mover.move().after->digest);
    request.sent.push_back(mover.pieces(round));
    if (first.mesh().world().transport()) request.places.push_back(mover.places(round));
  }
  request.received_sizes = [movers, round](size_t tensor, size_t index, size_t member) {
    return (*movers)[tensor].received_sizes(round, index, member);
  };
  return request;
}

}  // namespace

/// A tensor on its way: the moves that are left and the shards so far.
struct Journeys::Journey {
  std::vector<Move> moves;
  Shards shards;
  size_t next = 0;

  bool done() const { return next == moves.size(); }
  const Move& move() const { return moves[next]; }

  Mover depart() {
    if (!move().before->any_partial && move().after->any_partial) convert(shards, storage(*move().after));
    return Mover(move(), std::move(shards));
  }
  void arrive(Shards result) {
    shards = std::move(result);
    if (move().before->any_partial) convert(shards, storage(*move().after));
    ++next;
  }
  /// The steps that need no other rank, up to the next that does.
  void run_local_steps() {
    while (!done() && Mover(move(), shards).is_local()) arrive(depart().run_locally());
  }
};

/// Journeys whose next moves are of one kind and axis: one exchange (or two, for an all-reduce over messages).
struct Journeys::Bundle {
  std::vector<Journey*> journeys;
  std::shared_ptr<std::vector<Mover>> movers = std::make_shared<std::vector<Mover>>();
  std::optional<PendingExchange> pending = {};  ///< the first round, if it has begun

  const Mover& first() const { return movers->front(); }

  void count_traffic() const {
    double bytes = 0;
    for (const auto* journey : journeys) bytes += wire_bytes({journey->move()});
    const auto& mesh = first().mesh();
    mesh.world().traffic().add(mesh.axes()[static_cast<size_t>(first().axis())].name, first().kind(), bytes);
    if (!mesh.world().meta()) return;
    for (const auto* journey : journeys) mesh.world().moves().add(journey->move());
  }

  void run() {
    for (int round = 0; round < first().rounds(); ++round) {
      const auto absorb = [&](const std::vector<Pieces>& received) {
        for (size_t t = 0; t < movers->size(); ++t) (*movers)[t].absorb(round, received[t]);
      };
      if (pending)
        absorb(std::exchange(pending, std::nullopt)->finish());
      else
        exchange(round_of(movers, round), absorb);
    }
    for (size_t t = 0; t < movers->size(); ++t) journeys[t]->arrive((*movers)[t].take_result());
  }
};

Journeys::Journeys() = default;
Journeys::~Journeys() = default;
Journeys::Journeys(Journeys&&) noexcept = default;

void Journeys::add(std::vector<Move> moves, Shards shards) {
  journeys_.push_back({std::move(moves), std::move(shards)});
}

/// The first journey that is not done, and all others that wait for the same collective; false if all are done.
bool Journeys::collect() {
  auto bundle = std::make_unique<Bundle>();
  auto& movers = *bundle->movers;
  for (auto& journey : journeys_) journey.run_local_steps();
  for (auto& journey : journeys_) {
    if (journey.done()) continue;
    const Mover probe(journey.move(), journey.shards);
    if (!movers.empty() && bundle_key(probe) != bundle_key(movers[0])) continue;
    bundle->journeys.push_back(&journey);
    movers.push_back(journey.depart());
  }
  if (movers.empty()) return false;
  bundle->count_traffic();
  choose_rounds(movers);
  bundle_ = std::move(bundle);
  return true;
}

void Journeys::depart() {
  if (!collect() || bundle_->first().kind() != CollectiveKind::kAllGather) return;
  bundle_->pending.emplace(round_of(bundle_->movers, 0));
}

void Journeys::run() {
  while (bundle_ || collect()) {
    bundle_->run();
    bundle_.reset();
  }
}

Shards Journeys::take(size_t n) { return std::move(journeys_[n].shards); }

}  // namespace lockstep
