#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace lockstep::trainer {

/// What a rank has of a step's loss: that of the tokens that it computed itself, which ranks of a tensor-parallel group
/// have alike. Of no token: both 0.
struct LocalLoss {
  double sum = 0;
  double tokens = 0;  ///< with a label
};

/// Adds up microbatches. No communication, and nothing that observers see; a device's sums are read at the end alone.
class LocalLosses {
 public:
  /// `losses`: of a microbatch's tokens, on a mesh, 0 where there is no label. `has_label`: of each token, plain. What
  /// is still Partial counts as no token.
  void add(const at::Tensor& losses, const at::Tensor& has_label);

  /// By local rank, and forgets them.
  std::vector<LocalLoss> take();

 private:
  struct Sum {
    at::Tensor loss;  ///< in float64
    double tokens = 0;
  };
  std::vector<Sum> sums_;
};

}  // namespace lockstep::trainer
