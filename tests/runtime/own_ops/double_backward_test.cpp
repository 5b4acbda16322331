// Second derivatives of what lockstep fuzz cannot compare with LibTorch: it has no such op.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>

#include "core/error.h"
#include "fuzz/cases/tensors.h"
#include "runtime/own_ops/mesh_ops.h"

namespace lockstep::testing {
namespace {

using at::Tensor;

/// Of a function of both: the gradient of the sum of its squared gradients.
Tensor second_gradient(const Tensor& both, const std::function<Tensor(const Tensor&)>& function) {
  const auto x = both.detach().clone().requires_grad_();
  const auto first = torch::autograd::grad({at::sum(at::square(function(x)))}, {x}, {}, true, true)[0];
  return torch::autograd::grad({at::sum(at::square(first))}, {x})[0];
}

TEST(DoubleBackward, OfSwiglu) {
  register_backend();
  const auto both = at::arange(24, at::kDouble).mul(0.7).sin().reshape({3, 2, 4});
  const auto actual = second_gradient(both, mesh_ops::swiglu);
  const auto expected = second_gradient(
      both, [](const Tensor& x) { return at::mul(at::silu(at::select(x, -2, 0)), at::select(x, -2, 1)); });
  EXPECT_LE((actual - expected).abs().max().item<double>(), 1e-12 * expected.abs().max().item<double>());
}

/// LibTorch would warn, and go on with zero.
TEST(DoubleBackward, OfAnOpWithoutADerivativeIsRefused) {
  register_backend();
  const auto gradient = at::ones({3, 4}, at::kDouble).requires_grad_(), both = at::ones({3, 2, 4}, at::kDouble);
  const auto result = mesh_ops::swiglu_backward(gradient, both);
  EXPECT_THROW(at::sum(result).backward(), c10::Error);
}

}  // namespace
}  // namespace lockstep::testing
