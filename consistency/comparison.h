#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "consistency/difference.h"

namespace lockstep {

/// What a step produced: the values that must agree on every mesh. Tensors are whole and plain, or sharded ones, which
/// are compared where they lie: no rank hears of what another has.
struct StepRecord {
  struct Named {
    std::string name;
    at::Tensor value;
  };
  struct Scalar {
    std::string name;
    double value;
  };
  int64_t step = 0;
  double valid_tokens = 0, loss = 0, gradient_norm = 0;
  std::vector<Named> gradients;          ///< raw: before clipping
  std::vector<Named> parameters;         ///< after the update
  std::vector<Named> optimizer;          ///< states after the update
  std::vector<Scalar> scalars;           ///< what the optimizer takes
  std::vector<Named> token_losses = {};  ///< of each microbatch, where they are kept
};

/// How two records of one step compare.
struct Comparison {
  double loss = 0, gradient = 0, parameter = 0;  ///< worst relative difference of each kind; of states with parameters
  int64_t differing_bits = 0;                    ///< in everything compared, if bits are
  std::vector<Difference> beyond;  ///< those beyond the tolerance, in the order of the computation: the first is blamed
  int64_t values = 0;              ///< elements compared in this process
  double over_bound = 0;           ///< the largest error as a share of its bound, where bounds are derived
  bool agrees() const { return beyond.empty(); }
};

/// One tolerance for everything, relative to each tensor's largest element, or kBits. NaN agrees with NaN only.
/// REQUIRES: no Partial.
Comparison compare(const StepRecord& reference, const StepRecord& candidate, double tolerance);

}  // namespace lockstep
