#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

namespace lockstep {

/// What a step produced, gathered, as plain tensors of one domain: the values that must agree on every mesh.
struct StepRecord {
  int64_t step = 0;
  double loss = 0, gradient_norm = 0;
  struct Named {
    std::string name;
    at::Tensor value;
  };
  std::vector<Named> gradients;   ///< raw: before clipping
  std::vector<Named> parameters;  ///< after the update
  std::vector<Named> optimizer;   ///< states after the update
};

/// The worst element of one tensor.
struct Difference {
  std::string kind;     ///< "loss", "gradient norm", "gradient", "parameter", "optimizer state"
  std::string name;     ///< of the parameter; empty for scalars
  double relative = 0;  ///< |candidate - reference| over the reference tensor's largest element
  std::vector<int64_t> index;
  double reference = 0, candidate = 0;
  int64_t wrong_elements = 0, elements = 0;  ///< how many are beyond the tolerance
  /// "gradient of layers.0.attention.qkv.weight[12, 7] = 0.5, one device: 0.25 (relative 5e-1; 3 of 4096 elements)"
  std::string text() const;
};

/// How two records of one step compare.
struct Comparison {
  double loss = 0, gradient = 0, parameter = 0;  ///< worst relative difference of each kind; of states with parameters
  int64_t differing_bits = 0;                    ///< in everything compared; counted by compare_bits() alone
  std::vector<Difference> beyond;  ///< those beyond the tolerance, in the order of the computation: the first is blamed
  bool agrees() const { return beyond.empty(); }
};

/// One tolerance for everything, relative to each tensor's largest element. NaN agrees with NaN only.
Comparison compare(const StepRecord& reference, const StepRecord& candidate, double tolerance);

/// Bits: whatever differs in one is beyond (+0 and -0 do; NaN equals NaN).
Comparison compare_bits(const StepRecord& reference, const StepRecord& candidate);

/// In the float64 domain rounding is 1e-14 and an error of logic keeps its size.
inline constexpr double kFloat64Tolerance = 1e-9;

}  // namespace lockstep
