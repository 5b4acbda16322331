#pragma once
#include <torch/csrc/autograd/custom_function.h>

/// Gradients that are differentiated themselves. Our own ops' backwards have no derivatives, and what a forward has
/// saved for them is no function of its inputs to autograd: such a gradient is that of the same function, put together
/// of LibTorch's ops.
namespace lockstep::own_ops {

/// Whether the backward that runs was asked for with create_graph.
bool is_differentiated_again();

/// Gradients of `output`, a function of `inputs` whose ops have derivatives; undefined where none is asked for.
torch::autograd::variable_list differentiable_gradients(const at::Tensor& output,
                                                        const torch::autograd::variable_list& inputs,
                                                        const at::Tensor& gradient);

}  // namespace lockstep::own_ops
