#pragma once
#include <string>

#include "consistency/held_shards.h"

/// Where wrong values come from: an older one of the same tensor, or another rank's part of it.
namespace lockstep {

/// What a tensor should be, what it is (right where nobody has something else), and where that is wrong.
struct Damage {
  at::Tensor expected, candidate, wrong;
};

/// "old values", "the values of rank 2", "the values of other ranks", or empty where they are no such ones. `values`:
/// finished(held).
std::string origin_of(const HeldShards& held, const HeldShards& values, const Damage& damage);

/// For HeldShards::old_values.
std::vector<Digest> digests_of(const HeldShards& held);

}  // namespace lockstep
