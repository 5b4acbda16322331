#pragma once
#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <memory>

namespace lockstep::trainer {

/// The gradient of a leaf, taken from autograd before it is stored: that would copy it, which a sum must not be read
/// for that is not finished, and is an op.
inline std::shared_ptr<at::Tensor> taken_gradient(const at::Tensor& leaf) {
  struct Taker : torch::autograd::FunctionPreHook {
    explicit Taker(std::shared_ptr<at::Tensor> to) : gradient(std::move(to)) {}
    torch::autograd::variable_list operator()(const torch::autograd::variable_list& gradients) override {
      *gradient = gradients[0];
      return {at::Tensor()};
    }
    std::shared_ptr<at::Tensor> gradient;
  };
  auto gradient = std::make_shared<at::Tensor>();
  torch::autograd::impl::add_hook(leaf, std::make_unique<Taker>(gradient));
  return gradient;
}

}  // namespace lockstep::trainer
