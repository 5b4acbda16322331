#pragma once
#include <ATen/core/Tensor.h>

#include <tuple>

/// Our own ops composed of LibTorch's, for devices that have no loops of ours: a few times the memory traffic, the same
/// values but for rounding. Native numerics only: what canonical numerics alone needs is left out. What each computes
/// is documented in runtime/own_ops/mesh_ops.h.
namespace lockstep::composed {

using at::Tensor;

Tensor weight_gradient(const Tensor& gradient, const Tensor& input);
std::tuple<Tensor, Tensor> rms_norm(const Tensor& x, const Tensor& weight, double epsilon);
std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor& gradient, const Tensor& x, const Tensor& reciprocal,
                                             const Tensor& weight);
Tensor exponential_sum(const Tensor& logits, const Tensor& shift);
Tensor pick_class(const Tensor& logits, const Tensor& target);
Tensor cross_entropy_backward(const Tensor& gradient, const Tensor& logits, const Tensor& log_sum,
                              const Tensor& target);
/// Memory grows with the product of both lengths.
std::tuple<Tensor, Tensor> attention(const Tensor& query, const Tensor& key, const Tensor& value, bool causal,
                                     double scale, int64_t first_row);
std::tuple<Tensor, Tensor, Tensor> attention_backward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                                      const Tensor& value, const Tensor& output, const Tensor& log_sum,
                                                      bool causal, double scale, int64_t first_row);
Tensor sum_of_squares(const Tensor& x);
void adamw(const Tensor& parameter, const Tensor& gradient, const Tensor& mean, const Tensor& square,
           double learning_rate, double beta1, double beta2, double epsilon, double weight_decay, double correction1,
           double correction2, double gradient_scale);
Tensor swiglu(const Tensor& both);
Tensor swiglu_backward(const Tensor& gradient, const Tensor& both);
Tensor rotate_pairs(const Tensor& x, const Tensor& cosines, const Tensor& sines, bool back);

}  // namespace lockstep::composed
