#include "trainer/step/preference_loss.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

namespace lockstep::trainer {

at::Tensor preference_losses(const at::Tensor& losses, const at::Tensor& reference, double beta) {
  const auto gained = at::sum(reference - losses, {1}).view({losses.size(0) / 2, 2});
  return at::softplus(at::mul(gained.select(1, 0) - gained.select(1, 1), -beta));
}

}  // namespace lockstep::trainer
