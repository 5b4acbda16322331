#pragma once
#include <memory>
#include <vector>

#include "runtime/redistribution/collective.h"

namespace lockstep {

/// Those of one kind and axis, which share an exchange.
using Collectives = std::vector<std::unique_ptr<Collective>>;

/// Counts what they send: World::traffic(), and MoveCounts in a run without values.
void count_traffic(const Collectives& collectives);

/// Small sums over messages are quickest in one round, and so are sums of two ranks if that takes no more bytes.
void choose_rounds(const Collectives& collectives);

/// A round's exchange without what is sent.
Exchange announced(const Collectives& collectives, int round);

/// A round's exchange. `collectives` are kept for as long as it may ask for sizes.
Exchange round_of(const std::shared_ptr<Collectives>& collectives, int round);

}  // namespace lockstep
