#pragma once
#include <string>
#include <vector>

#include "core/digest/digest.h"
#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// What a state was once, by a digest of every shard of this process: whether anything was written since.
class StateMark {
 public:
  void set(const TrainingState& state) { digests_ = of(state); }

  /// "optimizer.mean.head.weight on rank 2": the first shard of this process that is another now; empty: none.
  /// REQUIRES: a state of the same tensors; set().
  std::string first_change(const TrainingState& state) const;

 private:
  static std::vector<Digest> of(const TrainingState& state);

  std::vector<Digest> digests_;  ///< by tensor and local rank
};

}  // namespace lockstep::trainer
