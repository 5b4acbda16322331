#include "runtime/own_ops/double_backward.h"

#include <torch/csrc/autograd/autograd.h>

namespace lockstep::own_ops {

using torch::autograd::variable_list;

bool is_differentiated_again() { return at::GradMode::is_enabled(); }

variable_list differentiable_gradients(const at::Tensor& output, const variable_list& inputs,
                                       const at::Tensor& gradient) {
  variable_list asked, gradients;
  for (const auto& input : inputs)
    if (input.requires_grad()) asked.push_back(input);
  const auto given = torch::autograd::grad({output}, asked, {gradient}, true, true, true);
  auto next = given.begin();
  for (const auto& input : inputs) gradients.push_back(input.requires_grad() ? *next++ : at::Tensor());
  return gradients;
}

}  // namespace lockstep::own_ops
