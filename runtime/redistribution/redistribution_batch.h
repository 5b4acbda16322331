#pragma once
#include <memory>
#include <vector>

#include "runtime/redistribution/redistribute.h"

namespace lockstep {

/// Tensors of one mesh on their way to other layouts, one move after the other. Those that wait for the same collective
/// travel together.
class RedistributionBatch {
 public:
  RedistributionBatch();
  ~RedistributionBatch();
  RedistributionBatch(RedistributionBatch&&) noexcept;

  void add(std::vector<Move> moves, Shards shards);
  /// Packed rows, with the cells that have one (ShardSet::present()) before each move and after the last.
  void add_rows(std::vector<Move> moves, Shards rows, std::vector<std::shared_ptr<const Shards>> present);
  /// Lets the first round of the first collective begin, and comes back at once. REQUIRES: World::overlaps().
  void start();
  /// Makes all moves.
  void run();
  /// The shards of the n-th that was added. REQUIRES: run().
  Shards take(size_t n);

 private:
  struct Entry;
  struct Bundle;

  bool collect();

  std::vector<Entry> entries_;
  std::unique_ptr<Bundle> bundle_;  ///< those that travel now
};

}  // namespace lockstep
