#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace lockstep {

/// Which parts of a range of bytes nobody has. The smallest part that is large enough is taken, the first among equals;
/// what is given back joins its neighbours (Knuth, The Art of Computer Programming 1, section 2.5, best fit).
class FreeBlocks {
 public:
  /// All of [0, bytes).
  explicit FreeBlocks(uint64_t bytes) { add(0, bytes); }

  /// Where so many bytes begin, which are the caller's from now on; nothing if no part is as large.
  std::optional<uint64_t> take(uint64_t bytes);
  /// REQUIRES: taken, and not given back yet.
  void give(uint64_t start, uint64_t bytes);

 private:
  using Blocks = std::map<uint64_t, uint64_t>;

  void add(uint64_t start, uint64_t bytes);
  void remove(Blocks::iterator block);

  Blocks blocks_;                                    ///< sizes by where they start
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  ///< size and start
};

}  // namespace lockstep
