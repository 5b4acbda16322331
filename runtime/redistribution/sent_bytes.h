#pragma once
#include <map>
#include <tuple>

#include "runtime/redistribution/redistribute.h"

namespace lockstep {

/// What a rank holds of a tensor before and after one axis changes its placement: elements (or bytes, or any measure
/// of them), each in so many nodes of an ordered sum.
struct Held {
  double before, after;
  double nodes_before = 1, nodes_after = 1;
};

/// The one model of what communication costs: how much of that a rank sends when the axis, a group of `ranks`, changes
/// from one placement to another. Its own shard to each other member (all-gather), each member's piece of what it holds
/// (reduce-scatter; all-to-all, with `after` what it keeps of its own), its fair share of a ring (all-reduce). Nothing
/// is sent from R. Layouts are chosen, ways between layouts found and dry runs counted by it.
double sent(const Placement& from, const Placement& to, double ranks, const Held& held);

/// Bytes that `rank` sends for a move.
double sent_bytes(const Move& move, int rank);

/// The mean over the mesh's ranks.
double mean_sent_bytes(const Move& move);

/// Of one element on the wire: unfinished sums travel in the dtype that they are kept in.
double element_bytes(const TensorSpec& spec);

/// mean_sent_bytes(), which goes through all ranks of a mesh, once for each move. A World::part().
class MeanSentBytes {
 public:
  explicit MeanSentBytes(World&) {}

  double of(const Move& move) {
    const auto [entry, is_new] = means_.try_emplace({move.axis, move.before, move.after});
    if (is_new) entry->second = mean_sent_bytes(move);
    return entry->second;
  }

 private:
  std::map<std::tuple<int, const TensorSpec*, const TensorSpec*>, double> means_;
};

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
