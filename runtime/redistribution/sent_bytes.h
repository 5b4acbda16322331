#pragma once
#include <map>
#include <tuple>

#include "runtime/redistribution/redistribute.h"

namespace lockstep {

/// Bytes that `rank` sends for a move: its own shard to each other member of the group (all-gather), each member's
/// piece of what it holds (reduce-scatter, all-to-all), its fair share of a ring (all-reduce). Over a group the mean is
/// wire_bytes(); where shards are uneven, ranks differ.
double sent_bytes(const Move& move, int rank);

/// Of one element on the wire: unfinished sums travel in the dtype that they are kept in.
double element_bytes(const TensorSpec& spec);

/// How often each move was made over the wire, in a run without values. A World::part().
class MoveCounts {
 public:
  explicit MoveCounts(World&) {}

  void add(const Move& move) { ++counts_[{move.axis, move.before, move.after}]; }
  void clear() { counts_.clear(); }

  /// Calls visit(move, count) for each.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [key, count] : counts_) visit(Move{std::get<0>(key), std::get<1>(key), std::get<2>(key)}, count);
  }

 private:
  std::map<std::tuple<int, const TensorSpec*, const TensorSpec*>, int64_t> counts_;
};

}  // namespace lockstep
