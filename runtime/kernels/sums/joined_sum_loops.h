#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernels/sums/sum_tree.h"

namespace lockstep::kernels {

/// How arrays that are nodes of a sum are added up, element by element, in the order of its tree: what SumJoiner makes
/// of them, in one pass over memory. Each is read once and each result written once; what is in between stays in the
/// cache.
class JoinedSum {
 public:
  /// Of these nodes, in the order in which their arrays will come.
  JoinedSum(const SumTree& tree, std::span<const SumNode> nodes);

  /// How many sums there are in the end: one, if all could be joined.
  int64_t parts() const { return static_cast<int64_t>(parts_); }

  /// Elements [begin, end) of each part, left to right. `nodes`, `parts`: where the arrays begin.
  template <class T>
  void run(std::span<const T* const> nodes, std::span<T* const> parts, int64_t begin, int64_t end) const;

 private:
  /// Adds two of what there is, or copies one (right < 0). Numbers below nodes_ are nodes, then come places in the
  /// cache, then parts.
  struct Step {
    int left, right, to;
  };
  int free_place();
  void release(int value);

  int nodes_, places_ = 0;
  size_t parts_ = 0;
  std::vector<Step> steps_;
  std::vector<int> free_;
};

}  // namespace lockstep::kernels
