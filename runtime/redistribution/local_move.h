#pragma once
#include "runtime/redistribution/redistribute.h"

namespace lockstep {

/// True if a move needs no other rank's data.
bool is_local(const Move& move);

/// The shards after such a move: new tensors. REQUIRES: is_local(move).
///
/// On an axis of one rank every placement is the same bytes; only the nodes of an ordered Partial are still to be
/// joined. Elsewhere a rank takes its rows of what all have, or its part of a sum.
Shards run_locally(const Move& move, const Shards& shards);

}  // namespace lockstep
