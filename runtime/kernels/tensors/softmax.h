#pragma once
#include <ATen/core/Tensor.h>

/// Softmax of CPU tensors along one whole dimension, in the order of the tree (softmax_loops.h). 16-bit tensors are
/// widened to fp32 and rounded once; the result is contiguous. LibTorch's thread count says how many threads share the
/// rows. REQUIRES: at least one dimension; -dims <= dim < dims; g and y of one size.
namespace lockstep::kernels {

at::Tensor softmax(const at::Tensor& x, int64_t dim);
at::Tensor log_softmax(const at::Tensor& x, int64_t dim);
at::Tensor softmax_backward(const at::Tensor& g, const at::Tensor& y, int64_t dim);
at::Tensor log_softmax_backward(const at::Tensor& g, const at::Tensor& y, int64_t dim);

}  // namespace lockstep::kernels
