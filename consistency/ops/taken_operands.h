#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "runtime/context/observer.h"

namespace lockstep {

/// The whole values of an op's sharded operands, as the op took them, in the order of sharded_operands().
///
/// An op that goes on with a sum's parts is compared by their sum in double. Where it adds them up first, native
/// numerics may do that in any order: what it got is what counts, and is known after the op alone.
class TakenOperands {
 public:
  /// To be made before the op. Collectives of all ranks.
  TakenOperands(const OpEvent& event, bool is_canonical);

  /// In their stored dtypes. To be called after the op; a collective.
  std::vector<at::Tensor> values(const OpEvent& event) const;

  /// Of each its sum in double and the sum of its parts' magnitudes, where the op goes on with parts; else not defined.
  struct Sum {
    at::Tensor exact, magnitude;
  };
  const std::vector<Sum>& sums() const { return sums_; }
  bool has_sums() const;
  /// Over how many ranks sums are added up on the way to an op that goes on with parts of them.
  double added_on_the_way() const { return added_on_the_way_; }

 private:
  std::vector<at::Tensor> before_;  ///< not defined: known after the op
  std::vector<Sum> sums_;
  double added_on_the_way_ = 0;
};

}  // namespace lockstep
