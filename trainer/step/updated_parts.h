#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "trainer/optim/parameter_state.h"

namespace lockstep::trainer {

/// What of each parameter this rank updates: all that it has of it, or, where its gradient is cut by dp_replicate
/// (update_layout()), a part that its replicas do not update and get from it afterwards. Costs the memory of the parts.
class UpdatedParts {
 public:
  /// `gradients`: of the trainable ones, in their order. No communication.
  UpdatedParts(const TrainingState& state, const std::vector<at::Tensor>& gradients);

  /// The same, with parts for values. Borrowed.
  const TrainingState& state() const { return parts_.empty() ? whole_ : parts_; }

  /// Parts go to all replicas, in buckets of so many bytes of what a rank has; parameters are written in place.
  void give_back(int64_t bucket_bytes);

 private:
  const TrainingState& whole_;
  TrainingState parts_;  ///< none: nothing is shared out
};

}  // namespace lockstep::trainer
