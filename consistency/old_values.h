#pragma once
#include <map>
#include <string>
#include <vector>

#include "consistency/held_shards.h"
#include "runtime/context/observer.h"

namespace lockstep {

/// What each rank's parts of a run's results held the time before, as digests: what an op writes, before it; else what
/// the same op of the same module gave last. A wrong value that is one of them was not renewed.
class OldValues {
 public:
  /// An op begins. Collectives of all ranks.
  void begin(const OpEvent& event);
  /// One of its results: adds to `held` what is known, and remembers it. In order.
  void look(const OpEvent& event, size_t result, HeldShards& held);
  /// The same of a move, which has one.
  void look(const MoveEvent& event, HeldShards& held);

 private:
  void exchange(const std::string& key, HeldShards& held);

  std::map<std::string, std::vector<Digest>> last_;                  ///< by id without step, microbatch and occurrence
  std::map<std::string, std::vector<std::vector<Digest>>> written_;  ///< of ops that have begun, by id
};

}  // namespace lockstep
