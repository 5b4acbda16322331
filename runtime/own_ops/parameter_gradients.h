#pragma once
#include <ATen/core/Tensor.h>

#include <functional>

/// Gradients of parameters that all rows of a batch share: sums over every dimension but the last. Under canonical
/// numerics positions of a sample are added first, then samples, and a result is a sum over samples that may be left
/// unfinished until it reaches its parameter.
namespace lockstep {

/// gradient [..., n], input [..., k] -> [n, k], the sum of outer products: of a linear map's weight.
at::Tensor linear_weight_gradient(const at::Tensor& gradient, const at::Tensor& input);

/// gradient [..., n] -> [n]: of a bias that is added to all rows.
at::Tensor bias_gradient(const at::Tensor& gradient);

/// x [..., n] times scale [n], differentiable: what is the same for all rows has such a gradient. (Of a product
/// autograd would finish the sum over samples too early.)
at::Tensor scaled_columns(const at::Tensor& x, const at::Tensor& scale);

/// Canonical: whether a mesh axis cuts `positions`, the dimension of a gradient [b, ...] that samples are summed over
/// first, and samples are a row of the batch each. (One of several rows is one sum over all of their positions, which
/// no rank has a run of.) Then each sample's sum is finished first, and samples are added: sum_of_samples().
bool sums_by_sample(const at::Tensor& gradient, int positions);

/// Canonical: the sum over samples of `samples()`, [b, ...] in the dtype that sums are kept in, of which a sum over
/// positions is unfinished: each sample's is finished first, then samples are added. Nothing is gathered.
at::Tensor sum_of_samples(c10::ScalarType dtype, const std::function<at::Tensor()>& samples);

/// In the dtype that sums are kept in: what an op makes on its way is not rounded to 16 bits.
at::Tensor widened(const at::Tensor& tensor);

}  // namespace lockstep
