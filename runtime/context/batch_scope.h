#pragma once
#include "core/batch_rows.h"

namespace lockstep {

/// Declares that the first dimension of activations is the batch and which rows of the global batch it holds: a
/// microbatch draws what the whole batch would draw there, and sums over it are trees over samples (canonical
/// numerics).
class BatchScope {
 public:
  explicit BatchScope(const BatchRows& rows);
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  BatchScope& operator=(const BatchScope&) = delete;

  /// All zero outside of every scope: weights never shift.
  static const BatchRows& rows();

 private:
  BatchRows previous_;
};

}  // namespace lockstep
